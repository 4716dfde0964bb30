"""What people have -> job profiles: file formats, importers and builders."""
