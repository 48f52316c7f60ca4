export type { ConnectPeer, PeerConnection } from "./connect.ts";
export {
	createPeerings,
	type PeeringCalls,
	type Peerings,
	type PeeringsOptions,
	type PeeringsState,
	type ReportImport,
} from "./peering.ts";
export { Record as PeeringRecordType } from "./records/peering-records.ts";
export {
	createRegionalCopies,
	type RegionalCopies,
	type RegionalCopiesOptions,
	type RegionalCopiesState,
} from "./regional/regional-copies.ts";
export type { OtherRegion, OwnRegion, Regions } from "./regional/regions.ts";
export { peerHeader } from "./trust/peer-header.ts";
export { Export, Import, Peering, peeringTypes } from "./types.ts";
