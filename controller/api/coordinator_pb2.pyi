from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class FromHost(_message.Message):
    __slots__ = ("hello", "ping", "plan_ready", "flow_ready", "flow_progress", "flow_received", "flow_sent", "task_done", "error", "flow_closed", "connected", "flow_ending")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    PING_FIELD_NUMBER: _ClassVar[int]
    PLAN_READY_FIELD_NUMBER: _ClassVar[int]
    FLOW_READY_FIELD_NUMBER: _ClassVar[int]
    FLOW_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    FLOW_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    FLOW_SENT_FIELD_NUMBER: _ClassVar[int]
    TASK_DONE_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    FLOW_CLOSED_FIELD_NUMBER: _ClassVar[int]
    CONNECTED_FIELD_NUMBER: _ClassVar[int]
    FLOW_ENDING_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    ping: Ping
    plan_ready: PlanReady
    flow_ready: FlowReady
    flow_progress: FlowProgress
    flow_received: FlowReceived
    flow_sent: FlowSent
    task_done: TaskDone
    error: HostError
    flow_closed: FlowClosed
    connected: Connected
    flow_ending: FlowEnding
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., ping: _Optional[_Union[Ping, _Mapping]] = ..., plan_ready: _Optional[_Union[PlanReady, _Mapping]] = ..., flow_ready: _Optional[_Union[FlowReady, _Mapping]] = ..., flow_progress: _Optional[_Union[FlowProgress, _Mapping]] = ..., flow_received: _Optional[_Union[FlowReceived, _Mapping]] = ..., flow_sent: _Optional[_Union[FlowSent, _Mapping]] = ..., task_done: _Optional[_Union[TaskDone, _Mapping]] = ..., error: _Optional[_Union[HostError, _Mapping]] = ..., flow_closed: _Optional[_Union[FlowClosed, _Mapping]] = ..., connected: _Optional[_Union[Connected, _Mapping]] = ..., flow_ending: _Optional[_Union[FlowEnding, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("host", "role", "protocol", "listen_port", "boot_id", "kernel")
    class KernelEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    HOST_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    LISTEN_PORT_FIELD_NUMBER: _ClassVar[int]
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    KERNEL_FIELD_NUMBER: _ClassVar[int]
    host: str
    role: str
    protocol: int
    listen_port: int
    boot_id: str
    kernel: _containers.ScalarMap[str, str]
    def __init__(self, host: _Optional[str] = ..., role: _Optional[str] = ..., protocol: _Optional[int] = ..., listen_port: _Optional[int] = ..., boot_id: _Optional[str] = ..., kernel: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Ping(_message.Message):
    __slots__ = ("sent",)
    SENT_FIELD_NUMBER: _ClassVar[int]
    sent: float
    def __init__(self, sent: _Optional[float] = ...) -> None: ...

class PlanReady(_message.Message):
    __slots__ = ("scenario",)
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    scenario: str
    def __init__(self, scenario: _Optional[str] = ...) -> None: ...

class Connected(_message.Message):
    __slots__ = ("scenario",)
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    scenario: str
    def __init__(self, scenario: _Optional[str] = ...) -> None: ...

class FlowId(_message.Message):
    __slots__ = ("job", "iteration", "flow")
    JOB_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    FLOW_FIELD_NUMBER: _ClassVar[int]
    job: str
    iteration: int
    flow: str
    def __init__(self, job: _Optional[str] = ..., iteration: _Optional[int] = ..., flow: _Optional[str] = ...) -> None: ...

class FiveTuple(_message.Message):
    __slots__ = ("src_ip", "dst_ip", "protocol", "src_port", "dst_port")
    SRC_IP_FIELD_NUMBER: _ClassVar[int]
    DST_IP_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    SRC_PORT_FIELD_NUMBER: _ClassVar[int]
    DST_PORT_FIELD_NUMBER: _ClassVar[int]
    src_ip: str
    dst_ip: str
    protocol: int
    src_port: int
    dst_port: int
    def __init__(self, src_ip: _Optional[str] = ..., dst_ip: _Optional[str] = ..., protocol: _Optional[int] = ..., src_port: _Optional[int] = ..., dst_port: _Optional[int] = ...) -> None: ...

class FlowReady(_message.Message):
    __slots__ = ("id", "key", "at")
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    id: FlowId
    key: FiveTuple
    at: float
    def __init__(self, id: _Optional[_Union[FlowId, _Mapping]] = ..., key: _Optional[_Union[FiveTuple, _Mapping]] = ..., at: _Optional[float] = ...) -> None: ...

class FlowProgress(_message.Message):
    __slots__ = ("flows", "at")
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    flows: _containers.RepeatedCompositeFieldContainer[Progress]
    at: float
    def __init__(self, flows: _Optional[_Iterable[_Union[Progress, _Mapping]]] = ..., at: _Optional[float] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("id", "acked")
    ID_FIELD_NUMBER: _ClassVar[int]
    ACKED_FIELD_NUMBER: _ClassVar[int]
    id: FlowId
    acked: int
    def __init__(self, id: _Optional[_Union[FlowId, _Mapping]] = ..., acked: _Optional[int] = ...) -> None: ...

class FlowEnding(_message.Message):
    __slots__ = ("id", "at")
    ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    id: FlowId
    at: float
    def __init__(self, id: _Optional[_Union[FlowId, _Mapping]] = ..., at: _Optional[float] = ...) -> None: ...

class FlowReceived(_message.Message):
    __slots__ = ("id", "at", "bytes")
    ID_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    id: FlowId
    at: float
    bytes: int
    def __init__(self, id: _Optional[_Union[FlowId, _Mapping]] = ..., at: _Optional[float] = ..., bytes: _Optional[int] = ...) -> None: ...

class FlowSent(_message.Message):
    __slots__ = ("id", "granted", "at", "bytes", "retransmits", "segments", "smoothed_rtt", "congestion_control", "allowed_bits", "grant_timed_out", "reused", "ready")
    ID_FIELD_NUMBER: _ClassVar[int]
    GRANTED_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    RETRANSMITS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    SMOOTHED_RTT_FIELD_NUMBER: _ClassVar[int]
    CONGESTION_CONTROL_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_BITS_FIELD_NUMBER: _ClassVar[int]
    GRANT_TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    id: FlowId
    granted: float
    at: float
    bytes: int
    retransmits: int
    segments: int
    smoothed_rtt: float
    congestion_control: str
    allowed_bits: float
    grant_timed_out: bool
    reused: bool
    ready: float
    def __init__(self, id: _Optional[_Union[FlowId, _Mapping]] = ..., granted: _Optional[float] = ..., at: _Optional[float] = ..., bytes: _Optional[int] = ..., retransmits: _Optional[int] = ..., segments: _Optional[int] = ..., smoothed_rtt: _Optional[float] = ..., congestion_control: _Optional[str] = ..., allowed_bits: _Optional[float] = ..., grant_timed_out: _Optional[bool] = ..., reused: _Optional[bool] = ..., ready: _Optional[float] = ...) -> None: ...

class TaskDone(_message.Message):
    __slots__ = ("job", "iteration", "task", "worker", "start", "finish")
    JOB_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    job: str
    iteration: int
    task: str
    worker: str
    start: float
    finish: float
    def __init__(self, job: _Optional[str] = ..., iteration: _Optional[int] = ..., task: _Optional[str] = ..., worker: _Optional[str] = ..., start: _Optional[float] = ..., finish: _Optional[float] = ...) -> None: ...

class HostError(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...

class FlowClosed(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: FlowId
    def __init__(self, id: _Optional[_Union[FlowId, _Mapping]] = ...) -> None: ...

class ToHost(_message.Message):
    __slots__ = ("welcome", "pong", "plan", "start", "settings", "item_done", "stop", "connect", "item_expected")
    WELCOME_FIELD_NUMBER: _ClassVar[int]
    PONG_FIELD_NUMBER: _ClassVar[int]
    PLAN_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    ITEM_DONE_FIELD_NUMBER: _ClassVar[int]
    STOP_FIELD_NUMBER: _ClassVar[int]
    CONNECT_FIELD_NUMBER: _ClassVar[int]
    ITEM_EXPECTED_FIELD_NUMBER: _ClassVar[int]
    welcome: Welcome
    pong: Pong
    plan: Plan
    start: Start
    settings: Settings
    item_done: Item
    stop: Stop
    connect: Connect
    item_expected: Item
    def __init__(self, welcome: _Optional[_Union[Welcome, _Mapping]] = ..., pong: _Optional[_Union[Pong, _Mapping]] = ..., plan: _Optional[_Union[Plan, _Mapping]] = ..., start: _Optional[_Union[Start, _Mapping]] = ..., settings: _Optional[_Union[Settings, _Mapping]] = ..., item_done: _Optional[_Union[Item, _Mapping]] = ..., stop: _Optional[_Union[Stop, _Mapping]] = ..., connect: _Optional[_Union[Connect, _Mapping]] = ..., item_expected: _Optional[_Union[Item, _Mapping]] = ...) -> None: ...

class Welcome(_message.Message):
    __slots__ = ("boot_id", "ipv4", "ipv6", "grant_timeout")
    BOOT_ID_FIELD_NUMBER: _ClassVar[int]
    IPV4_FIELD_NUMBER: _ClassVar[int]
    IPV6_FIELD_NUMBER: _ClassVar[int]
    GRANT_TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    boot_id: str
    ipv4: str
    ipv6: str
    grant_timeout: float
    def __init__(self, boot_id: _Optional[str] = ..., ipv4: _Optional[str] = ..., ipv6: _Optional[str] = ..., grant_timeout: _Optional[float] = ...) -> None: ...

class Pong(_message.Message):
    __slots__ = ("sent", "now")
    SENT_FIELD_NUMBER: _ClassVar[int]
    NOW_FIELD_NUMBER: _ClassVar[int]
    sent: float
    now: float
    def __init__(self, sent: _Optional[float] = ..., now: _Optional[float] = ...) -> None: ...

class Plan(_message.Message):
    __slots__ = ("scenario", "workers", "transport")
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    WORKERS_FIELD_NUMBER: _ClassVar[int]
    TRANSPORT_FIELD_NUMBER: _ClassVar[int]
    scenario: str
    workers: _containers.RepeatedCompositeFieldContainer[WorkerPlan]
    transport: TransportPlan
    def __init__(self, scenario: _Optional[str] = ..., workers: _Optional[_Iterable[_Union[WorkerPlan, _Mapping]]] = ..., transport: _Optional[_Union[TransportPlan, _Mapping]] = ...) -> None: ...

class TransportPlan(_message.Message):
    __slots__ = ("congestion_control", "ack_class", "wire_per_payload", "progress_interval")
    CONGESTION_CONTROL_FIELD_NUMBER: _ClassVar[int]
    ACK_CLASS_FIELD_NUMBER: _ClassVar[int]
    WIRE_PER_PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    congestion_control: str
    ack_class: int
    wire_per_payload: float
    progress_interval: float
    def __init__(self, congestion_control: _Optional[str] = ..., ack_class: _Optional[int] = ..., wire_per_payload: _Optional[float] = ..., progress_interval: _Optional[float] = ...) -> None: ...

class WorkerPlan(_message.Message):
    __slots__ = ("job", "worker", "iterations", "arrival", "tasks", "sends", "receives", "holds")
    JOB_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    ARRIVAL_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    SENDS_FIELD_NUMBER: _ClassVar[int]
    RECEIVES_FIELD_NUMBER: _ClassVar[int]
    HOLDS_FIELD_NUMBER: _ClassVar[int]
    job: str
    worker: str
    iterations: int
    arrival: float
    tasks: _containers.RepeatedCompositeFieldContainer[TaskPlan]
    sends: _containers.RepeatedCompositeFieldContainer[SendPlan]
    receives: _containers.RepeatedCompositeFieldContainer[ReceivePlan]
    holds: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, job: _Optional[str] = ..., worker: _Optional[str] = ..., iterations: _Optional[int] = ..., arrival: _Optional[float] = ..., tasks: _Optional[_Iterable[_Union[TaskPlan, _Mapping]]] = ..., sends: _Optional[_Iterable[_Union[SendPlan, _Mapping]]] = ..., receives: _Optional[_Iterable[_Union[ReceivePlan, _Mapping]]] = ..., holds: _Optional[_Iterable[str]] = ...) -> None: ...

class TaskPlan(_message.Message):
    __slots__ = ("id", "seconds", "after")
    ID_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    id: str
    seconds: float
    after: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, id: _Optional[str] = ..., seconds: _Optional[float] = ..., after: _Optional[_Iterable[str]] = ...) -> None: ...

class SendPlan(_message.Message):
    __slots__ = ("id", "bytes", "after", "dst_worker", "dst_ip", "dst_port", "number")
    ID_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    DST_WORKER_FIELD_NUMBER: _ClassVar[int]
    DST_IP_FIELD_NUMBER: _ClassVar[int]
    DST_PORT_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    id: str
    bytes: int
    after: _containers.RepeatedScalarFieldContainer[str]
    dst_worker: str
    dst_ip: str
    dst_port: int
    number: int
    def __init__(self, id: _Optional[str] = ..., bytes: _Optional[int] = ..., after: _Optional[_Iterable[str]] = ..., dst_worker: _Optional[str] = ..., dst_ip: _Optional[str] = ..., dst_port: _Optional[int] = ..., number: _Optional[int] = ...) -> None: ...

class ReceivePlan(_message.Message):
    __slots__ = ("id", "number", "bytes")
    ID_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    id: str
    number: int
    bytes: int
    def __init__(self, id: _Optional[str] = ..., number: _Optional[int] = ..., bytes: _Optional[int] = ...) -> None: ...

class Item(_message.Message):
    __slots__ = ("job", "iteration", "item", "at")
    JOB_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    ITEM_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    job: str
    iteration: int
    item: str
    at: float
    def __init__(self, job: _Optional[str] = ..., iteration: _Optional[int] = ..., item: _Optional[str] = ..., at: _Optional[float] = ...) -> None: ...

class Connect(_message.Message):
    __slots__ = ("scenario",)
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    scenario: str
    def __init__(self, scenario: _Optional[str] = ...) -> None: ...

class Start(_message.Message):
    __slots__ = ("scenario", "at")
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    scenario: str
    at: float
    def __init__(self, scenario: _Optional[str] = ..., at: _Optional[float] = ...) -> None: ...

class Settings(_message.Message):
    __slots__ = ("flows",)
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    flows: _containers.RepeatedCompositeFieldContainer[FlowSetting]
    def __init__(self, flows: _Optional[_Iterable[_Union[FlowSetting, _Mapping]]] = ...) -> None: ...

class FlowSetting(_message.Message):
    __slots__ = ("id", "class_", "pace", "not_before")
    ID_FIELD_NUMBER: _ClassVar[int]
    CLASS__FIELD_NUMBER: _ClassVar[int]
    PACE_FIELD_NUMBER: _ClassVar[int]
    NOT_BEFORE_FIELD_NUMBER: _ClassVar[int]
    id: FlowId
    class_: int
    pace: float
    not_before: float
    def __init__(self, id: _Optional[_Union[FlowId, _Mapping]] = ..., class_: _Optional[int] = ..., pace: _Optional[float] = ..., not_before: _Optional[float] = ...) -> None: ...

class Stop(_message.Message):
    __slots__ = ("scenario", "reason")
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    scenario: str
    reason: str
    def __init__(self, scenario: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ScenarioRequest(_message.Message):
    __slots__ = ("name", "policy", "workload_json", "size_scale", "time_scale", "seed", "timeout", "ipv6")
    NAME_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    WORKLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    SIZE_SCALE_FIELD_NUMBER: _ClassVar[int]
    TIME_SCALE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TIMEOUT_FIELD_NUMBER: _ClassVar[int]
    IPV6_FIELD_NUMBER: _ClassVar[int]
    name: str
    policy: str
    workload_json: str
    size_scale: float
    time_scale: float
    seed: int
    timeout: float
    ipv6: bool
    def __init__(self, name: _Optional[str] = ..., policy: _Optional[str] = ..., workload_json: _Optional[str] = ..., size_scale: _Optional[float] = ..., time_scale: _Optional[float] = ..., seed: _Optional[int] = ..., timeout: _Optional[float] = ..., ipv6: _Optional[bool] = ...) -> None: ...

class ScenarioEvent(_message.Message):
    __slots__ = ("started", "iteration_done", "note", "result")
    STARTED_FIELD_NUMBER: _ClassVar[int]
    ITERATION_DONE_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    RESULT_FIELD_NUMBER: _ClassVar[int]
    started: ScenarioStarted
    iteration_done: IterationDone
    note: Note
    result: ScenarioResult
    def __init__(self, started: _Optional[_Union[ScenarioStarted, _Mapping]] = ..., iteration_done: _Optional[_Union[IterationDone, _Mapping]] = ..., note: _Optional[_Union[Note, _Mapping]] = ..., result: _Optional[_Union[ScenarioResult, _Mapping]] = ...) -> None: ...

class ScenarioStarted(_message.Message):
    __slots__ = ("at", "flows", "agents")
    AT_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    AGENTS_FIELD_NUMBER: _ClassVar[int]
    at: float
    flows: int
    agents: int
    def __init__(self, at: _Optional[float] = ..., flows: _Optional[int] = ..., agents: _Optional[int] = ...) -> None: ...

class IterationDone(_message.Message):
    __slots__ = ("job", "iteration", "at")
    JOB_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    AT_FIELD_NUMBER: _ClassVar[int]
    job: str
    iteration: int
    at: float
    def __init__(self, job: _Optional[str] = ..., iteration: _Optional[int] = ..., at: _Optional[float] = ...) -> None: ...

class Note(_message.Message):
    __slots__ = ("message",)
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    message: str
    def __init__(self, message: _Optional[str] = ...) -> None: ...

class ScenarioResult(_message.Message):
    __slots__ = ("name", "policy", "started", "finished", "flows", "tasks", "notes", "counters_before_json", "counters_after_json", "decisions", "kernel")
    class KernelEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NAME_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    FINISHED_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    TASKS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_BEFORE_JSON_FIELD_NUMBER: _ClassVar[int]
    COUNTERS_AFTER_JSON_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    KERNEL_FIELD_NUMBER: _ClassVar[int]
    name: str
    policy: str
    started: float
    finished: float
    flows: _containers.RepeatedCompositeFieldContainer[FlowRecord]
    tasks: _containers.RepeatedCompositeFieldContainer[TaskRecord]
    notes: _containers.RepeatedScalarFieldContainer[str]
    counters_before_json: str
    counters_after_json: str
    decisions: DecisionRecord
    kernel: _containers.ScalarMap[str, str]
    def __init__(self, name: _Optional[str] = ..., policy: _Optional[str] = ..., started: _Optional[float] = ..., finished: _Optional[float] = ..., flows: _Optional[_Iterable[_Union[FlowRecord, _Mapping]]] = ..., tasks: _Optional[_Iterable[_Union[TaskRecord, _Mapping]]] = ..., notes: _Optional[_Iterable[str]] = ..., counters_before_json: _Optional[str] = ..., counters_after_json: _Optional[str] = ..., decisions: _Optional[_Union[DecisionRecord, _Mapping]] = ..., kernel: _Optional[_Mapping[str, str]] = ...) -> None: ...

class FlowRecord(_message.Message):
    __slots__ = ("id", "src", "dst", "echelonflow", "bytes", "ready", "start", "finish", "ideal_finish", "classes", "retransmits", "segments", "smoothed_rtt", "congestion_control", "pace_ratio", "grant_timed_out", "key", "reused", "wire_bytes")
    ID_FIELD_NUMBER: _ClassVar[int]
    SRC_FIELD_NUMBER: _ClassVar[int]
    DST_FIELD_NUMBER: _ClassVar[int]
    ECHELONFLOW_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    IDEAL_FINISH_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    RETRANSMITS_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    SMOOTHED_RTT_FIELD_NUMBER: _ClassVar[int]
    CONGESTION_CONTROL_FIELD_NUMBER: _ClassVar[int]
    PACE_RATIO_FIELD_NUMBER: _ClassVar[int]
    GRANT_TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    REUSED_FIELD_NUMBER: _ClassVar[int]
    WIRE_BYTES_FIELD_NUMBER: _ClassVar[int]
    id: FlowId
    src: str
    dst: str
    echelonflow: str
    bytes: int
    ready: float
    start: float
    finish: float
    ideal_finish: float
    classes: _containers.RepeatedCompositeFieldContainer[ClassChange]
    retransmits: int
    segments: int
    smoothed_rtt: float
    congestion_control: str
    pace_ratio: float
    grant_timed_out: bool
    key: FiveTuple
    reused: bool
    wire_bytes: float
    def __init__(self, id: _Optional[_Union[FlowId, _Mapping]] = ..., src: _Optional[str] = ..., dst: _Optional[str] = ..., echelonflow: _Optional[str] = ..., bytes: _Optional[int] = ..., ready: _Optional[float] = ..., start: _Optional[float] = ..., finish: _Optional[float] = ..., ideal_finish: _Optional[float] = ..., classes: _Optional[_Iterable[_Union[ClassChange, _Mapping]]] = ..., retransmits: _Optional[int] = ..., segments: _Optional[int] = ..., smoothed_rtt: _Optional[float] = ..., congestion_control: _Optional[str] = ..., pace_ratio: _Optional[float] = ..., grant_timed_out: _Optional[bool] = ..., key: _Optional[_Union[FiveTuple, _Mapping]] = ..., reused: _Optional[bool] = ..., wire_bytes: _Optional[float] = ...) -> None: ...

class ClassChange(_message.Message):
    __slots__ = ("at", "class_", "pace")
    AT_FIELD_NUMBER: _ClassVar[int]
    CLASS__FIELD_NUMBER: _ClassVar[int]
    PACE_FIELD_NUMBER: _ClassVar[int]
    at: float
    class_: int
    pace: float
    def __init__(self, at: _Optional[float] = ..., class_: _Optional[int] = ..., pace: _Optional[float] = ...) -> None: ...

class TaskRecord(_message.Message):
    __slots__ = ("job", "iteration", "task", "worker", "start", "finish")
    JOB_FIELD_NUMBER: _ClassVar[int]
    ITERATION_FIELD_NUMBER: _ClassVar[int]
    TASK_FIELD_NUMBER: _ClassVar[int]
    WORKER_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    FINISH_FIELD_NUMBER: _ClassVar[int]
    job: str
    iteration: int
    task: str
    worker: str
    start: float
    finish: float
    def __init__(self, job: _Optional[str] = ..., iteration: _Optional[int] = ..., task: _Optional[str] = ..., worker: _Optional[str] = ..., start: _Optional[float] = ..., finish: _Optional[float] = ...) -> None: ...

class DecisionRecord(_message.Message):
    __slots__ = ("decisions", "settings_sent", "rules_sent", "rules_refused", "grants_timed_out", "latency_mean", "latency_p99", "decide_mean", "apply_mean")
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_SENT_FIELD_NUMBER: _ClassVar[int]
    RULES_SENT_FIELD_NUMBER: _ClassVar[int]
    RULES_REFUSED_FIELD_NUMBER: _ClassVar[int]
    GRANTS_TIMED_OUT_FIELD_NUMBER: _ClassVar[int]
    LATENCY_MEAN_FIELD_NUMBER: _ClassVar[int]
    LATENCY_P99_FIELD_NUMBER: _ClassVar[int]
    DECIDE_MEAN_FIELD_NUMBER: _ClassVar[int]
    APPLY_MEAN_FIELD_NUMBER: _ClassVar[int]
    decisions: int
    settings_sent: int
    rules_sent: int
    rules_refused: int
    grants_timed_out: int
    latency_mean: float
    latency_p99: float
    decide_mean: float
    apply_mean: float
    def __init__(self, decisions: _Optional[int] = ..., settings_sent: _Optional[int] = ..., rules_sent: _Optional[int] = ..., rules_refused: _Optional[int] = ..., grants_timed_out: _Optional[int] = ..., latency_mean: _Optional[float] = ..., latency_p99: _Optional[float] = ..., decide_mean: _Optional[float] = ..., apply_mean: _Optional[float] = ...) -> None: ...

class AddJobsRequest(_message.Message):
    __slots__ = ("workload_json",)
    WORKLOAD_JSON_FIELD_NUMBER: _ClassVar[int]
    workload_json: str
    def __init__(self, workload_json: _Optional[str] = ...) -> None: ...

class AddJobsReply(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, jobs: _Optional[_Iterable[str]] = ...) -> None: ...

class RemoveJobRequest(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: str
    def __init__(self, job: _Optional[str] = ...) -> None: ...

class RemoveJobReply(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("policy", "hosts", "flows", "jobs", "scenario", "decisions", "notes")
    POLICY_FIELD_NUMBER: _ClassVar[int]
    HOSTS_FIELD_NUMBER: _ClassVar[int]
    FLOWS_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    SCENARIO_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    NOTES_FIELD_NUMBER: _ClassVar[int]
    policy: str
    hosts: _containers.RepeatedCompositeFieldContainer[HostStatus]
    flows: _containers.RepeatedCompositeFieldContainer[FlowStatus]
    jobs: _containers.RepeatedScalarFieldContainer[str]
    scenario: str
    decisions: DecisionRecord
    notes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, policy: _Optional[str] = ..., hosts: _Optional[_Iterable[_Union[HostStatus, _Mapping]]] = ..., flows: _Optional[_Iterable[_Union[FlowStatus, _Mapping]]] = ..., jobs: _Optional[_Iterable[str]] = ..., scenario: _Optional[str] = ..., decisions: _Optional[_Union[DecisionRecord, _Mapping]] = ..., notes: _Optional[_Iterable[str]] = ...) -> None: ...

class HostStatus(_message.Message):
    __slots__ = ("host", "role", "attached")
    HOST_FIELD_NUMBER: _ClassVar[int]
    ROLE_FIELD_NUMBER: _ClassVar[int]
    ATTACHED_FIELD_NUMBER: _ClassVar[int]
    host: str
    role: str
    attached: bool
    def __init__(self, host: _Optional[str] = ..., role: _Optional[str] = ..., attached: _Optional[bool] = ...) -> None: ...

class FlowStatus(_message.Message):
    __slots__ = ("id", "key", "class_", "pace", "remaining")
    ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    CLASS__FIELD_NUMBER: _ClassVar[int]
    PACE_FIELD_NUMBER: _ClassVar[int]
    REMAINING_FIELD_NUMBER: _ClassVar[int]
    id: FlowId
    key: FiveTuple
    class_: int
    pace: float
    remaining: float
    def __init__(self, id: _Optional[_Union[FlowId, _Mapping]] = ..., key: _Optional[_Union[FiveTuple, _Mapping]] = ..., class_: _Optional[int] = ..., pace: _Optional[float] = ..., remaining: _Optional[float] = ...) -> None: ...
