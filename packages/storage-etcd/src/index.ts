export {
	defaultPrefix,
	type EtcdOptions,
	type EtcdTls,
	type EtcdUser,
} from "./client/etcd-options.ts";
export { ForeignData } from "./decode-resource.ts";
export { createEtcdBackend, type EtcdBackendOptions, etcdRequestLimits } from "./etcd-backend.ts";
export { EtcdLeases, type EtcdLeasesOptions } from "./etcd-leases.ts";
export type { EtcdRequestLimits } from "./group-commit.ts";
