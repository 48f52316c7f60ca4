/** What the tests of other packages use. Not published. */
export { EtcdClient } from "./client/etcd-client.ts";
export { EtcdProcess, etcdctl } from "./etcd-process.fixture.ts";
export { type Event, Event_EventType, type KeyValue } from "./gen/mvccpb/kv_pb.ts";
export { Keys, keyText } from "./keys.ts";
export { TcpProxy } from "./tcp-proxy.fixture.ts";
