export {
	defaultPrefix,
	type EtcdOptions,
	type EtcdTls,
	type EtcdUser,
} from "./client/etcd-options.ts";
export { declareRestored } from "./declare-restored.ts";
export { ForeignData } from "./decode-resource.ts";
export { createEtcdBackend, type EtcdBackendOptions, type EtcdStorage } from "./etcd-backend.ts";
export { EtcdLeases, type EtcdLeasesOptions } from "./etcd-leases.ts";
export { type EtcdRequestLimits, etcdRequestLimits } from "./request-limits.ts";
export type { StoreIdentity } from "./store-identity.ts";
