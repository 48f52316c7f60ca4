export { clientLeaseName } from "./lease-names.ts";
export { createLeaseService, type LeaseAccess, type LeaseServiceOptions } from "./lease-service.ts";
export { RemoteLeases, type RemoteLeasesOptions } from "./remote-leases.ts";
