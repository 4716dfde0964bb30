"""The device: one data plane, its pipeline and forwarding state, and the clients that control it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from finsy.proto import p4r

from switch.compile import CompilerError
from switch.dataplane import Dataplane, Digest, PacketIn, UnsupportedProgram
from switch.server.arbitration import Arbiter, Client, uint128
from switch.server.errors import Code, Outcome, RequestError, invalid
from switch.server.pipeline import Pipeline, build
from switch.server.ports import Ports
from switch.server.roles import RoleConfig
from switch.server.scope import p4info_id
from switch.server.snapshot import replay, snapshot
from switch.server.state import ForwardingState
from switch.server.undo import write_or_roll_back

_LOG = logging.getLogger(__name__)

SetRequest = p4r.SetForwardingPipelineConfigRequest
GetRequest = p4r.GetForwardingPipelineConfigRequest


class _Saved:
    """A pipeline saved but not committed: what is written to it goes to a scratch data plane and is remembered."""

    def __init__(self, pipeline: Pipeline, scratch: Dataplane, ports: Ports) -> None:
        scratch.load(pipeline.json)
        self.scratch = scratch
        self.state = ForwardingState(pipeline, scratch, ports, lambda _: False)
        self.updates: list[p4r.Update] = []


class Device:
    """What the P4Runtime service serves. Thread-safe."""

    def __init__(
        self,
        device_id: int,
        dataplane: Dataplane,
        cpu_port: int | None,
        make_scratch: Callable[[], Dataplane],
    ) -> None:
        """`make_scratch`: another data plane like this one, without ports, for pipelines that are tried or saved."""
        self.device_id = device_id
        self._arbiter = Arbiter(device_id)
        self._dataplane = dataplane
        self._make_scratch = make_scratch
        self._ports = Ports(dataplane, cpu_port)
        # taken in this order
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._arbiter_lock = threading.Lock()
        self._state: ForwardingState | None = None
        self._saved: _Saved | None = None

    def check_device(self, device_id: int) -> None:
        """Raises NOT_FOUND unless the request is for this device."""
        if device_id != self.device_id:
            raise RequestError(
                Code.NOT_FOUND, f"this switch is device {self.device_id}, not {device_id}"
            )

    # -- arbitration --------------------------------------------------------------------------------------------

    def arbitrate(self, client: Client, message: p4r.MasterArbitrationUpdate) -> None:
        """Take a client's bid to be primary. A write that has begun ends first, as the specification asks: the new
        primary finds nothing of the old one under way. Raises as `Arbiter.update`."""
        with self._writing, self._arbiter_lock:
            self._arbiter.update(client, message)

    def leave(self, client: Client) -> None:
        """A client's stream has ended; a backup may become primary."""
        with self._writing, self._arbiter_lock:
            self._arbiter.leave(client)

    def is_primary(self, client: Client) -> bool:
        """Whether a client is the primary of its role."""
        with self._arbiter_lock:
            return self._arbiter.is_primary(client)

    # -- write and read -----------------------------------------------------------------------------------------

    def write(self, request: p4r.WriteRequest) -> list[Outcome]:
        """Do a batch; an outcome for each update. Raises NOT_FOUND (device), PERMISSION_DENIED (not primary),
        FAILED_PRECONDITION (no pipeline), UNIMPLEMENTED (atomicity)."""
        self.check_device(request.device_id)
        with self._lock, self._writing:
            role = self._check_primary(request)
            state = self._addressed()
            if request.atomicity == p4r.WriteRequest.ROLLBACK_ON_ERROR:
                denied = _denied(request, role)
                if any(denied):
                    return denied
                outcomes = write_or_roll_back(state, list(request.updates))
            elif request.atomicity == p4r.WriteRequest.CONTINUE_ON_ERROR:
                outcomes = _write_allowed(state, request, role)
            else:
                raise RequestError(
                    Code.UNIMPLEMENTED, "batches that are atomic for packets are not supported"
                )
            if self._saved is not None:
                done = [
                    u
                    for u, outcome in zip(request.updates, outcomes, strict=True)
                    if outcome is None
                ]
                self._saved.updates.extend(done)
            return outcomes

    def read(self, request: p4r.ReadRequest) -> Iterator[p4r.ReadResponse | list[Outcome]]:
        """The selected entities in messages of bounded size; last, if a request failed, the outcomes of all. The
        answer is of one moment: nothing is written meanwhile."""
        self.check_device(request.device_id)
        with self._arbiter_lock:
            role = self._arbiter.role_config(request.role)
        with self._lock:
            state = self._addressed()
            responses, outcomes = _read_all(state, request, role)
        yield from responses
        if any(outcomes):
            yield outcomes

    def _addressed(self) -> ForwardingState:
        """The state that requests refer to: the saved pipeline's while there is one."""
        state = self._saved.state if self._saved is not None else self._state
        if state is None:
            raise RequestError(
                Code.FAILED_PRECONDITION, "No forwarding pipeline config set for this device"
            )
        return state

    def _check_primary(self, request: p4r.WriteRequest | SetRequest) -> RoleConfig:
        election_id = uint128(request.election_id) if request.HasField("election_id") else None
        role = request.role or (str(request.role_id) if request.role_id else "")
        with self._arbiter_lock:
            return self._arbiter.check_primary(role, election_id)

    # -- pipeline -----------------------------------------------------------------------------------------------

    def set_pipeline(self, request: SetRequest) -> None:
        """SetForwardingPipelineConfig, all actions. Raises NOT_FOUND (device, nothing saved), PERMISSION_DENIED,
        INVALID_ARGUMENT (no or a bad config, state that cannot be carried over)."""
        self.check_device(request.device_id)
        with self._lock:
            if not self._check_primary(request).can_push_pipeline:
                raise RequestError(Code.PERMISSION_DENIED, "this role may not push a pipeline")
            if request.action == SetRequest.COMMIT:
                self._commit_saved(request)
                return
            if (
                request.action not in SetRequest.Action.values()
                or request.action == SetRequest.UNSPECIFIED
            ):
                raise invalid("Invalid SetForwardingPipeline action")
            if not request.HasField("config"):
                raise invalid("the request has no config")
            if request.action == SetRequest.RECONCILE_AND_COMMIT and self._is_running(
                request.config
            ):
                self._keep(request.config)
                return
            pipeline = self._build(request.config)
            if request.action == SetRequest.VERIFY_AND_SAVE:
                self._drop_saved()
                self._saved = _Saved(pipeline, self._make_scratch(), self._ports)
            elif request.action == SetRequest.VERIFY_AND_COMMIT:
                self._commit(pipeline, [])
            elif request.action == SetRequest.RECONCILE_AND_COMMIT:
                self._reconcile(pipeline)

    def get_pipeline(self, request: GetRequest) -> p4r.GetForwardingPipelineConfigResponse:
        """GetForwardingPipelineConfig. Raises NOT_FOUND, FAILED_PRECONDITION (none set, as BMv2), INVALID_ARGUMENT."""
        self.check_device(request.device_id)
        with self._lock:
            config = self._addressed().pipeline.config
        response = p4r.GetForwardingPipelineConfigResponse()
        if request.response_type not in GetRequest.ResponseType.values():
            raise invalid("Invalid response_type in GetForwardingPipelineConfigRequest")
        response.config.SetInParent()
        if request.response_type in (GetRequest.ALL, GetRequest.P4INFO_AND_COOKIE):
            response.config.p4info.CopyFrom(config.p4info)
        if request.response_type in (GetRequest.ALL, GetRequest.DEVICE_CONFIG_AND_COOKIE):
            response.config.p4_device_config = config.p4_device_config
        if config.HasField("cookie"):
            response.config.cookie.CopyFrom(config.cookie)
        return response

    def load_program(self, json: bytes) -> None:
        """Run a program that came without P4Info: frames are processed, P4Runtime waits for a pipeline. Requests wait
        meanwhile. Raises INVALID_ARGUMENT, INTERNAL (no C compiler)."""
        with self._lock, _compiling():
            self._dataplane.load(json)

    def _build(self, config: p4r.ForwardingPipelineConfig) -> Pipeline:
        copy = p4r.ForwardingPipelineConfig()
        copy.CopyFrom(config)
        with _compiling():
            return build(copy, self._dataplane.check)

    def _commit(self, pipeline: Pipeline, updates: list[p4r.Update]) -> None:
        """Run a pipeline; no frame meets it before the updates are done."""
        self._drop_saved()

        def fill() -> None:
            self._state = ForwardingState(pipeline, self._dataplane, self._ports, self._send_digest)
            replay(self._state, updates)

        self._dataplane.load(pipeline.json, fill)
        _LOG.info("pipeline committed: %d tables", len(pipeline.tables))

    def _commit_saved(self, request: SetRequest) -> None:
        if request.HasField("config"):
            raise invalid("COMMIT takes no config: it commits the one that was saved")
        saved = self._saved
        if saved is None:
            raise RequestError(Code.NOT_FOUND, "no config was saved (VERIFY_AND_SAVE)")
        self._commit(saved.state.pipeline, saved.updates)

    def _reconcile(self, pipeline: Pipeline) -> None:
        """Carry the state over to a new pipeline, tried on a scratch data plane first: all of it or nothing."""
        updates = snapshot(self._state) if self._state is not None else []
        scratch = self._make_scratch()
        try:
            scratch.load(pipeline.json)
            lost = replay(ForwardingState(pipeline, scratch, self._ports, lambda _: False), updates)
        finally:
            scratch.close()
        if lost:
            raise invalid(
                f"{len(lost)} entities do not fit the new pipeline; the first: {lost[0].message}"
            )
        self._commit(pipeline, updates)

    def _is_running(self, config: p4r.ForwardingPipelineConfig) -> bool:
        if self._state is None or self._saved is not None:
            return False
        running = self._state.pipeline.config
        return (
            config.p4_device_config == running.p4_device_config and config.p4info == running.p4info
        )

    def _keep(self, config: p4r.ForwardingPipelineConfig) -> None:
        """The very pipeline that runs: nothing to do but to remember its cookie."""
        assert self._state is not None
        copy = p4r.ForwardingPipelineConfig()
        copy.CopyFrom(config)
        self._state.pipeline = replace(self._state.pipeline, config=copy)

    def _drop_saved(self) -> None:
        if self._saved is not None:
            self._saved.scratch.close()
            self._saved = None

    # -- packets and notifications ------------------------------------------------------------------------------

    def packet_out(self, packet: p4r.PacketOut) -> None:
        """Send a primary's packet. Raises FAILED_PRECONDITION (no pipeline), INVALID_ARGUMENT."""
        state = self._state
        if state is None:
            raise RequestError(
                Code.FAILED_PRECONDITION, "No forwarding pipeline config set for this device"
            )
        self._dataplane.packet_out(state.packet_out.encode(packet))

    def acknowledge(self, ack: p4r.DigestListAck) -> None:
        """Take a digest acknowledgement. Raises FAILED_PRECONDITION, INVALID_ARGUMENT."""
        with self._lock:
            if self._state is None:
                raise RequestError(
                    Code.FAILED_PRECONDITION, "No forwarding pipeline config set for this device"
                )
            self._state.digests.acknowledge(ack)

    def handle_events(self) -> None:
        """Pass on what the data plane has: packet-ins, digests, link changes."""
        for event in self._dataplane.read_events():
            if isinstance(event, PacketIn):
                self._packet_in(event.frame)
                continue
            with self._lock:
                state = self._state
                if isinstance(event, Digest):
                    if state is not None:
                        state.digests.learned(event.digest, event.samples)
                else:
                    self._ports.changed(event.port, event.up)
                    if state is not None:
                        state.port_changed(event.port)
                    if self._saved is not None:
                        self._saved.state.port_changed(event.port)

    def tick(self) -> float | None:
        """Do what is due by the clock; seconds until something is due again, None if nothing is."""
        with self._lock:
            state = self._state
            if state is None:
                return None
            state.digests.tick()
            due = [state.digests.next_due()]
            for table in state.tables.values():
                if table.info.idle_timeout:
                    self._notify_idle(table.idle_messages())
                    due.append(table.idle.next_due())
        return min((max(0.0, d - time.monotonic()) for d in due if d is not None), default=None)

    def _packet_in(self, frame: bytes) -> None:
        state = self._state
        packet = state.packet_in.decode(frame) if state is not None else None
        if packet is None:
            return
        response = p4r.StreamMessageResponse(packet=packet)
        with self._arbiter_lock:
            for client, role in self._arbiter.primaries():
                if role.wants(packet):
                    client.send(response)

    def _send_digest(self, message: p4r.DigestList) -> bool:
        return self._send_by_scope(p4r.StreamMessageResponse(digest=message), message.digest_id)

    def _notify_idle(self, entries: list[p4r.TableEntry]) -> None:
        if entries:
            note = p4r.IdleTimeoutNotification(table_entry=entries, timestamp=time.time_ns())
            self._send_by_scope(
                p4r.StreamMessageResponse(idle_timeout_notification=note), entries[0].table_id
            )

    def _send_by_scope(self, response: p4r.StreamMessageResponse, entity_id: int) -> bool:
        with self._arbiter_lock:
            receivers = [
                client for client, role in self._arbiter.primaries() if role.allows(entity_id)
            ]
            for client in receivers:
                client.send(response)
        return bool(receivers)

    def close(self) -> None:
        """Let go of a saved pipeline's scratch data plane."""
        with self._lock:
            self._drop_saved()


@contextmanager
def _compiling() -> Iterator[None]:
    """What can be wrong with a program or with the compiler, as P4Runtime says it."""
    try:
        yield
    except UnsupportedProgram as error:
        raise invalid(f"the program cannot run here: {error}") from error
    except ValueError as error:
        raise invalid(f"not a BMv2 JSON: {error}") from error
    except CompilerError as error:
        raise RequestError(Code.INTERNAL, str(error)) from error


MAX_RESPONSE_BYTES = 1 << 20
"""Of one ReadResponse, about: clients take 4 MB by default."""


def _read_all(
    state: ForwardingState, request: p4r.ReadRequest, role: RoleConfig
) -> tuple[list[p4r.ReadResponse], list[Outcome]]:
    responses = [p4r.ReadResponse()]
    outcomes: list[Outcome] = []
    size = 0
    for wanted in request.entities:
        try:
            for entity in state.read(wanted):
                if not role.allows(p4info_id(entity)):
                    continue
                size += entity.ByteSize()
                if size > MAX_RESPONSE_BYTES and responses[-1].entities:
                    responses.append(p4r.ReadResponse())
                    size = entity.ByteSize()
                responses[-1].entities.append(entity)
            outcomes.append(None)
        except RequestError as error:
            outcomes.append(error)
    return responses, outcomes


def _denied(request: p4r.WriteRequest, role: RoleConfig) -> list[Outcome]:
    """PERMISSION_DENIED for each update outside the role's scope."""
    if role.writable is None:
        return [None] * len(request.updates)
    denial = RequestError(Code.PERMISSION_DENIED, "the entity is outside the scope of this role")
    return [None if role.allows(p4info_id(u.entity)) else denial for u in request.updates]


def _write_allowed(
    state: ForwardingState, request: p4r.WriteRequest, role: RoleConfig
) -> list[Outcome]:
    if role.writable is None:
        return state.write(request.updates)
    outcomes = _denied(request, role)
    allowed = [position for position, outcome in enumerate(outcomes) if outcome is None]
    for position, outcome in zip(
        allowed, state.write([request.updates[p] for p in allowed]), strict=True
    ):
        outcomes[position] = outcome
    return outcomes
