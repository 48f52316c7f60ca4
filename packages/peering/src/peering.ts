import type { ConnectError, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import type { PeerExchangeService } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import type { ImportRecord } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import type { PeeringService } from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import type { TypeRegistry } from "@plinth/resource";
import type { LeaseHold, LeaseManager, Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend, StorageIdentity } from "@plinth/storage";
import type { ConnectPeer } from "./connect.ts";
import { ExportStreams } from "./export/export-streams.ts";
import type { StreamedExport } from "./export/open-streams.ts";
import type { CopyReferences } from "./import/import-store.ts";
import { Importer, type RunningImport } from "./import/importer.ts";
import { peeringLimits } from "./limits.ts";
import { OwnIdentity } from "./records/cluster-identity.ts";
import type { RegionalCopies } from "./regional/regional-copies.ts";
import { createExchangeService } from "./services/exchange-service.ts";
import { createPeeringService } from "./services/peering-service.ts";
import { PeerAccess } from "./trust/peer-access.ts";
import { PeerCredentials } from "./trust/peer-credentials.ts";

/** Options of `createPeerings`. */
export interface PeeringsOptions {
	/** The storage, beside references. */
	readonly backend: StorageBackend;
	/** The references to copies. By default, copies are never referenced. */
	readonly references?: CopyReferences | undefined;
	/** Absent if the storage was never restored: its records identify it. */
	readonly identity?: Pick<StorageIdentity, "incarnation"> | undefined;
	readonly registry: TypeRegistry;
	readonly leases: LeaseManager;
	readonly connect: ConnectPeer;
	/** The copies of other regions, which are reported with the peerings; absent if there is no other region. */
	readonly regional?: Pick<RegionalCopies, "live"> | undefined;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** The copies that one import stores, with their namespaces; 200,000 by default. Above it, the import stops. */
	readonly maxCopies?: number | undefined;
	/**
	 * Called when a call of a peer has a wrong token or credential. Returns the error of the call, which may be another one than
	 * the one that says so.
	 */
	readonly wrongCredential?:
		| ((call: HandlerContext, failure: ConnectError) => ConnectError)
		| undefined;
	/**
	 * Called when a call of a peer was found to have a valid credential, before it does anything: from then on, the call can
	 * count for the peer. Throws a ConnectError to refuse the call.
	 */
	readonly admit?: ((call: HandlerContext, peer: { readonly name: string }) => void) | undefined;
	/** Reports the state of an Import in its status. A failure is logged, and tried again later. */
	readonly report: ReportImport;
}

/** Writes the status of an Import. */
export type ReportImport = (report: {
	readonly resource: Resource;
	readonly state: string;
	readonly message: string;
	readonly record: ImportRecord;
	readonly hold: LeaseHold;
}) => Promise<void>;

/** What callers of `PeeringService` act with. */
export interface PeeringCalls {
	/** The address at which peers reach this server, unless a request names another one. */
	readonly address: () => string;
	/** Reads a resource with the rights of a call. @throws ConnectError. */
	readonly read: (id: ID, call: HandlerContext) => Promise<Resource>;
	/** Writes a resource with the rights of a call. @throws ConnectError. */
	readonly write: (resource: Resource, call: HandlerContext) => Promise<Resource>;
}

/** What a server imports and exports. */
export interface PeeringsState {
	/** The imports that this server runs: all, or none. */
	readonly imports: readonly RunningImport[];
	/** What was streamed to peers since this server has started. */
	readonly exports: readonly StreamedExport[];
}

/** The peerings of a server. */
export interface Peerings {
	/** The service for clusters of other owners. It authenticates its callers itself, by the credentials of peers. */
	readonly exchangeService: ServiceImpl<typeof PeerExchangeService>;
	/** The service for users. */
	peeringService(calls: PeeringCalls): ServiceImpl<typeof PeeringService>;
	/** What this server imports and exports. */
	state(): Promise<PeeringsState>;
	/** Runs the imports, on one server of the cluster at a time, until the signal aborts. Never rejects. */
	run(signal: AbortSignal): Promise<void>;
}

/** Creates the peerings of a server. Nothing is stored before there is a peering. */
export function createPeerings(options: PeeringsOptions): Peerings {
	const { backend, references, registry, runtime, logger, connect, leases, report } = options;
	const identity = new OwnIdentity(backend, options.identity, runtime);
	const access = new PeerAccess(backend, identity, runtime, options.admit ?? (() => {}));
	const credentials = new PeerCredentials(backend, identity, connect, runtime);
	const importer = new Importer({
		...{ backend, references, registry, identity, access, credentials, connect, leases },
		...{ runtime, logger },
		maxCopies: options.maxCopies ?? peeringLimits.copies,
		report: async (resource, { state, message }, record, hold) => {
			try {
				await report({ resource, state, message, record, hold });
			} catch (err) {
				logger.warn({ import: record.import, err }, "the status of an import was not written");
			}
		},
	});
	const streams = new ExportStreams({ backend, registry, identity, access, runtime });
	return {
		exchangeService: createExchangeService({
			...{ streams, identity, access, logger },
			wrongCredential: options.wrongCredential ?? ((_, failure) => failure),
			onEstablished: (peer) => logger.info({ peering: peer.name }, "peering established"),
		}),
		peeringService: (calls) =>
			createPeeringService({
				...{ backend, access, credentials, importer, runtime, logger, regional: options.regional },
				...calls,
			}),
		state: async () => ({ imports: await importer.state(), exports: streams.state }),
		run: (signal) => importer.run(signal),
	};
}
