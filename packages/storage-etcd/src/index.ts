export {
	defaultPrefix,
	type EtcdOptions,
	type EtcdTls,
	type EtcdUser,
} from "./client/etcd-options.ts";
export { type EtcdRequestLimits, etcdRequestLimits } from "./commit/request-limits.ts";
export { createEtcdBackend, type EtcdBackend, type EtcdBackendOptions } from "./etcd-backend.ts";
export { declareRestored } from "./history/declare-restored.ts";
export { OverlappingPrefix } from "./history/overlapping-prefix.ts";
export type { EtcdStorageIdentity } from "./history/store-identity.ts";
export { EtcdLeases, type EtcdLeasesOptions } from "./leases/etcd-leases.ts";
export { UnrecognizedData } from "./state/decode-resource.ts";
