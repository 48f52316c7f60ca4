/** What the tests of other packages use. Not published. */
export { EtcdClient } from "./client/etcd-client.ts";
export { type Event, Event_EventType, type KeyValue } from "./gen/mvccpb/kv_pb.ts";
export { Keys, keyText } from "./keys.ts";
export { EtcdProcess, etcdctl, hasEtcd } from "./testing/etcd-process.fixture.ts";
