"""Action profiles: members, groups, one-shot action sets, weights and watch ports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from finsy.proto import p4r

from switch.dataplane import Dataplane, Target, TargetKind
from switch.server.actions import ActionSet
from switch.server.errors import Code, RequestError, invalid, not_found
from switch.server.pipeline import ProfileInfo
from switch.server.ports import Ports, port_number


@dataclass(slots=True)
class _Member:
    """A member as the client sees it."""

    message: p4r.ActionProfileMember
    entries: int = 0
    """Table entries that point to it."""
    groups: set[int] = field(default_factory=set)
    """Groups it belongs to."""


@dataclass(slots=True)
class _Group:
    """A group, and what its liveness hangs on."""

    message: p4r.ActionProfileGroup | None
    """None for the hidden group of a one-shot action set."""
    slots: list[tuple[int, int, int | None]]
    """(member id, weight, watch port or None), in the client's order."""
    entries: int = 0


class Profile:
    """One action profile. All its tables are programmed either by members and groups or by one-shots, never both."""

    def __init__(self, info: ProfileInfo, dataplane: Dataplane, ports: Ports) -> None:
        self.info = info
        self._dataplane = dataplane
        self._ports = ports
        self._id = dataplane.action_profile(info.name)
        self._actions = ActionSet(
            info.actions,
            lambda name: dataplane.profile_action(self._id, name),
            f"action profile {info.name}",
        )
        self._members: dict[int, _Member] = {}
        self._groups: dict[int, _Group] = {}
        self._one_shots: dict[int, list[int]] = {}
        self._next_one_shot = 1

    # -- members ----------------------------------------------------------------------------------------------

    def insert_member(self, message: p4r.ActionProfileMember) -> None:
        """Add a member. Raises ALREADY_EXISTS, RESOURCE_EXHAUSTED, INVALID_ARGUMENT."""
        self._manual()
        if not message.member_id:
            raise invalid("member id 0 is not allowed")
        action, params = self._action(message.action)
        if message.member_id in self._members:
            raise RequestError(
                Code.ALREADY_EXISTS, f"{self.info.name}: member {message.member_id} exists"
            )
        self._dataplane.add_member(self._id, message.member_id, action, params)
        self._members[message.member_id] = _Member(_copy_member(message))

    def modify_member(self, message: p4r.ActionProfileMember) -> None:
        """Change what a member does. Raises NOT_FOUND, INVALID_ARGUMENT."""
        self._manual()
        member = self._member(message.member_id)
        action, params = self._action(message.action)
        self._dataplane.modify_member(self._id, message.member_id, action, params)
        member.message = _copy_member(message)

    def delete_member(self, message: p4r.ActionProfileMember) -> None:
        """Remove a member. Raises NOT_FOUND, FAILED_PRECONDITION (in use)."""
        self._manual()
        member = self._member(message.member_id)
        if member.entries or member.groups:
            users = (
                f"group {min(member.groups)}"
                if member.groups
                else f"{member.entries} table entries"
            )
            raise RequestError(
                Code.FAILED_PRECONDITION,
                f"{self.info.name}: member {message.member_id} is in use by {users}",
            )
        self._dataplane.delete_member(self._id, message.member_id)
        del self._members[message.member_id]

    def read_members(self, member_id: int) -> Iterator[p4r.ActionProfileMember]:
        """One member, or all if `member_id` is 0. PI answers an unknown id with nothing."""
        if not member_id:
            yield from (member.message for member in self._members.values())
        elif member_id in self._members:
            yield self._members[member_id].message

    # -- groups -----------------------------------------------------------------------------------------------

    def insert_group(self, message: p4r.ActionProfileGroup) -> None:
        """Add a group. Raises ALREADY_EXISTS, NOT_FOUND (a member), RESOURCE_EXHAUSTED, INVALID_ARGUMENT."""
        self._selector()
        if not message.group_id:
            raise invalid("group id 0 is not allowed")
        if message.group_id in self._groups:
            raise RequestError(
                Code.ALREADY_EXISTS, f"{self.info.name}: group {message.group_id} exists"
            )
        limit = self.info.max_group_size
        if message.max_size < 0 or (limit and message.max_size > limit):
            raise invalid(f"{self.info.name}: max_size {message.max_size} is not within 0..{limit}")
        group = self._resolve(message)
        self._apply(message.group_id, group)
        self._groups[message.group_id] = group
        self._join(message.group_id, group)

    def modify_group(self, message: p4r.ActionProfileGroup) -> None:
        """Replace a group's members. Raises NOT_FOUND, RESOURCE_EXHAUSTED, INVALID_ARGUMENT (max_size changed)."""
        self._selector()
        old = self._group(message.group_id)
        assert old.message is not None
        if message.max_size != old.message.max_size:
            raise invalid(f"{self.info.name}: max_size of group {message.group_id} cannot change")
        group = self._resolve(message)
        group.entries = old.entries
        self._apply(message.group_id, group)
        self._leave(message.group_id, old)
        self._groups[message.group_id] = group
        self._join(message.group_id, group)

    def delete_group(self, message: p4r.ActionProfileGroup) -> None:
        """Remove a group. Raises NOT_FOUND, FAILED_PRECONDITION (in use)."""
        self._selector()
        group = self._group(message.group_id)
        if group.entries:
            raise RequestError(
                Code.FAILED_PRECONDITION,
                f"{self.info.name}: group {message.group_id} is in use by {group.entries} table entries",
            )
        self._dataplane.delete_group(self._id, message.group_id)
        self._leave(message.group_id, group)
        del self._groups[message.group_id]

    def read_groups(self, group_id: int) -> Iterator[p4r.ActionProfileGroup]:
        """One group, or all if `group_id` is 0."""
        for key, group in self._groups.items():
            if group.message is not None and group_id in (0, key):
                yield group.message

    # -- what table entries use ---------------------------------------------------------------------------------

    def acquire(self, action: p4r.TableAction) -> Target:
        """What an entry with this action points to; counts the entry as a user. Raises INVALID_ARGUMENT."""
        kind = action.WhichOneof("type")
        if kind == "action_profile_member_id":
            self._manual()
            if action.action_profile_member_id not in self._members:
                raise invalid(f"{self.info.name}: no member {action.action_profile_member_id}")
            self._members[action.action_profile_member_id].entries += 1
            return Target(TargetKind.MEMBER, action.action_profile_member_id)
        if kind == "action_profile_group_id":
            self._manual()
            if action.action_profile_group_id not in self._groups:
                raise invalid(f"{self.info.name}: no group {action.action_profile_group_id}")
            self._groups[action.action_profile_group_id].entries += 1
            return Target(TargetKind.GROUP, action.action_profile_group_id)
        if kind == "action_profile_action_set":
            return self._create_one_shot(action.action_profile_action_set)
        raise invalid(
            f"the table uses action profile {self.info.name}: give a member, a group or an action set"
        )

    def release(self, target: Target) -> None:
        """The entry no longer points there; a one-shot's hidden group and members go with it."""
        if target.kind is TargetKind.MEMBER:
            self._members[target.id].entries -= 1
        elif target.id in self._one_shots:
            self._dataplane.delete_group(self._id, target.id)
            for member in self._one_shots.pop(target.id):
                self._dataplane.delete_member(self._id, member)
            del self._groups[target.id]
        else:
            self._groups[target.id].entries -= 1

    def port_changed(self, port: int) -> None:
        """A port went up or down: groups that watch it are re-made."""
        for group_id, group in self._groups.items():
            if any(watch == port for _, _, watch in group.slots):
                self._apply(group_id, group)

    # -- inside -----------------------------------------------------------------------------------------------

    def _create_one_shot(self, action_set: p4r.ActionProfileActionSet) -> Target:
        if not self.info.selector:
            raise invalid(f"{self.info.name} has no selector: action sets need one")
        if self._members or any(group.message is not None for group in self._groups.values()):
            raise invalid(
                f"{self.info.name} is programmed by members and groups: action sets cannot be mixed in"
            )
        if action_set.action_selection_mode or action_set.size_semantics:
            raise RequestError(
                Code.UNIMPLEMENTED, "selection mode and size semantics are those of the selector"
            )
        actions = action_set.action_profile_actions
        self._check_sizes(
            [a.weight for a in actions], self.info.max_group_size, Code.INVALID_ARGUMENT
        )
        parsed = [(*self._action(a.action), self._weight(a.weight), _watch(a)) for a in actions]
        group_id, members, slots = self._next_one_shot, [], []
        try:
            for action, params, weight, watch in parsed:
                member = self._next_one_shot
                self._next_one_shot += 1
                self._dataplane.add_member(self._id, member, action, params)
                members.append(member)
                slots.append((member, weight, watch))
            self._next_one_shot = max(self._next_one_shot, group_id + 1)
            group = _Group(None, slots, entries=1)
            self._apply(group_id, group)
        except Exception:
            for member in members:
                self._dataplane.delete_member(self._id, member)
            raise
        self._one_shots[group_id] = members
        self._groups[group_id] = group
        return Target(TargetKind.GROUP, group_id)

    def _apply(self, group_id: int, group: _Group) -> None:
        alive = [
            (m, weight)
            for m, weight, watch in group.slots
            if watch is None or self._ports.is_up(watch)
        ]
        self._dataplane.set_group(self._id, group_id, alive)

    def _resolve(self, message: p4r.ActionProfileGroup) -> _Group:
        limit = message.max_size or self.info.max_group_size
        self._check_sizes([m.weight for m in message.members], limit, Code.RESOURCE_EXHAUSTED)
        slots, seen = [], set()
        for member in message.members:
            if member.member_id in seen:
                raise invalid(
                    f"{self.info.name}: member {member.member_id} is listed twice; use its weight"
                )
            seen.add(member.member_id)
            self._member(member.member_id)
            slots.append((member.member_id, self._weight(member.weight), _watch(member)))
        copy = p4r.ActionProfileGroup()
        copy.CopyFrom(message)
        return _Group(copy, slots)

    def _check_sizes(self, weights: list[int], limit: int, code: Code) -> None:
        size = len(weights) if self.info.counts_members else sum(w or 1 for w in weights)
        if limit and size > limit:
            raise RequestError(
                code, f"{self.info.name}: a group of size {size} exceeds the maximum of {limit}"
            )

    def _weight(self, weight: int) -> int:
        if self.info.weights_disallowed:
            if weight:
                raise invalid(f"{self.info.name}: weights are not allowed")
            return 1
        if weight <= 0:
            raise invalid(f"{self.info.name}: the weight of a member must be positive")
        if self.info.max_member_weight and weight > self.info.max_member_weight:
            raise invalid(
                f"{self.info.name}: weight {weight} exceeds the maximum of {self.info.max_member_weight}"
            )
        return weight

    def _action(self, action: p4r.Action) -> tuple[int, bytes]:
        codec = self._actions.find(action.action_id)
        return codec.dataplane_id, codec.encode(action)

    def _join(self, group_id: int, group: _Group) -> None:
        for member, _, _ in group.slots:
            self._members[member].groups.add(group_id)

    def _leave(self, group_id: int, group: _Group) -> None:
        for member, _, _ in group.slots:
            self._members[member].groups.discard(group_id)

    def _manual(self) -> None:
        if self._one_shots:
            raise invalid(
                f"{self.info.name} is programmed by action sets: members and groups cannot be mixed in"
            )

    def _selector(self) -> None:
        self._manual()
        if not self.info.selector:
            raise invalid(f"{self.info.name} has no selector, hence no groups")

    def _member(self, member_id: int) -> _Member:
        if member_id not in self._members:
            raise not_found(f"{self.info.name}: no member {member_id}")
        return self._members[member_id]

    def _group(self, group_id: int) -> _Group:
        if group_id not in self._groups:
            raise not_found(f"{self.info.name}: no group {group_id}")
        return self._groups[group_id]


def _watch(message: p4r.ActionProfileAction | p4r.ActionProfileGroup.Member) -> int | None:
    kind = message.WhichOneof("watch_kind")
    if kind == "watch_port":
        return port_number(message.watch_port) if message.watch_port else None
    # the deprecated field cannot say "none" otherwise than by 0, which PI also reads so
    return message.watch or None


def _copy_member(message: p4r.ActionProfileMember) -> p4r.ActionProfileMember:
    copy = p4r.ActionProfileMember()
    copy.CopyFrom(message)
    return copy


def read_profiles(profiles: dict[int, Profile], profile_id: int) -> Iterable[Profile]:
    """The profiles a read selects: one, or all for id 0. Raises INVALID_ARGUMENT for an unknown id."""
    if not profile_id:
        return profiles.values()
    if profile_id not in profiles:
        raise invalid(f"no action profile has id {profile_id:#010x}")
    return [profiles[profile_id]]
