export {
	defaultPrefix,
	type EtcdOptions,
	type EtcdTls,
	type EtcdUser,
} from "./client/etcd-options.ts";
export { ForeignData } from "./decode-resource.ts";
export { createEtcdBackend, type EtcdBackendOptions } from "./etcd-backend.ts";
export { EtcdLeases, type EtcdLeasesOptions } from "./etcd-leases.ts";
export { type EtcdRequestLimits, etcdRequestLimits } from "./request-limits.ts";
