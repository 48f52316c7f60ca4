import type { ServiceImpl } from "@connectrpc/connect";
import type { RegionalCopyService } from "@plinth/proto/gen/plinth/meta/v1/regional_copy_service_pb.js";
import type { TypeRegistry } from "@plinth/resource";
import type { LeaseManager, Logger, Runtime } from "@plinth/runtime";
import type { StorageBackend, StorageIdentity } from "@plinth/storage";
import type { StreamedExport } from "../export/open-streams.ts";
import type { LiveImport } from "../import/live-import.ts";
import { peeringLimits } from "../limits.ts";
import { OwnIdentity } from "../records/cluster-identity.ts";
import { OfferStreams } from "./offer-streams.ts";
import { RegionalCopier, type RunningCopies } from "./regional-copier.ts";
import { createRegionalCopyService } from "./regional-copy-service.ts";
import type { OwnRegion, Regions } from "./regions.ts";

/** Options of `createRegionalCopies`. */
export interface RegionalCopiesOptions {
	/** The storage, beside references: copies have no shadows. */
	readonly backend: StorageBackend;
	/** Absent if the storage was never restored: its records identify it. */
	readonly identity?: Pick<StorageIdentity, "incarnation"> | undefined;
	readonly registry: TypeRegistry;
	readonly own: OwnRegion;
	readonly regions: Regions;
	readonly leases: LeaseManager;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** The copies that are stored of one partition of a region; 200,000 by default. Above it, copying stops. */
	readonly maxCopies?: number | undefined;
}

/** What a server copies from other regions, and what it offers to them. */
export interface RegionalCopiesState {
	/** What this server keeps up to date: all copies, or none. */
	readonly copies: readonly RunningCopies[];
	/** What was streamed to other regions since this server has started. */
	readonly offers: readonly StreamedExport[];
}

/** The copies between the regions of a service. */
export interface RegionalCopies {
	/** The service for other regions, on a listener that requires the credential of deployments. */
	readonly service: ServiceImpl<typeof RegionalCopyService>;
	/** What this server copies and offers. */
	state(): Promise<RegionalCopiesState>;
	/** What this server knows of copies that it keeps up to date, by the uid in their record. */
	live(uid: string): LiveImport | undefined;
	/** Copies from other regions, on one server of the deployment at a time, until the signal aborts. Never rejects. */
	run(signal: AbortSignal): Promise<void>;
}

/** Creates the copies between the regions of a service. Nothing is stored before something is offered. */
export function createRegionalCopies(options: RegionalCopiesOptions): RegionalCopies {
	const { backend, runtime, logger } = options;
	const identity = new OwnIdentity(backend, options.identity, runtime);
	const offers = new OfferStreams({ ...options, identity });
	const copier = new RegionalCopier({
		...options,
		maxCopies: options.maxCopies ?? peeringLimits.copies,
	});
	return {
		service: createRegionalCopyService(offers, logger),
		state: async () => ({ copies: await copier.state(), offers: offers.state }),
		live: (uid) => copier.live(uid),
		run: (signal) => copier.run(signal),
	};
}
