import { metaService } from "@plinth/db-constraint";
import {
	createPeerings,
	createRegionalCopies,
	type Peerings,
	type RegionalCopies,
} from "@plinth/peering";
import { RegisteredRegions } from "../deployment/registered-regions.ts";
import { observePeerings, observeRegionalCopies } from "../operations/peering-metrics.ts";
import { connectPeer } from "../peering/connect-peer.ts";
import { reportImports } from "../peering/report-import.ts";
import type { Interfaces } from "../services/register-services.ts";
import type { RequestLimits } from "./request-limits.ts";
import type { StartContext } from "./start-context.ts";
import type { StartedStorage } from "./start-storage.ts";
import type { Telemetry } from "./start-telemetry.ts";
import type { ValidatedOptions } from "./validate-options.ts";

/** What a server copies from elsewhere, and offers to others. */
export interface Copies {
	readonly peerings: Peerings;
	/** Absent unless the server is of one region of a service. */
	readonly regional: RegionalCopies | undefined;
}

/** The parts of a server that copies use. */
interface CopiesParts
	extends Pick<ValidatedOptions, "registry" | "peers">,
		Pick<StartedStorage, "unconstrained" | "identity" | "leases" | "references">,
		Pick<RequestLimits, "gate" | "wrongCredentials">,
		Pick<Telemetry, "metrics"> {
	/** The server's own interfaces. They are called only once there are imports. */
	readonly interfaces: () => Pick<Interfaces, "trustedCloned">;
}

/** Creates the copies of a server, with their instruments. */
export function createCopies(context: StartContext, parts: CopiesParts): Copies {
	const { runtime, logger } = context;
	const { registry, unconstrained: backend, references, identity, leases, metrics } = parts;
	const regional = createRegional(context, parts);
	const peerings = createPeerings({
		...{ backend, references, identity, registry, leases, regional, runtime, logger },
		connect: connectPeer(runtime.clock),
		admit: (call, peer) => parts.gate.enterPeer(call, peer),
		wrongCredential: (call, failure) => parts.wrongCredentials.refuse(call, failure),
		report: reportImports({
			writeStatus: (request, call) => parts.interfaces().trustedCloned.writeStatus(request, call),
		}),
	});
	observePeerings(metrics.meter, peerings);
	observeRegionalCopies(metrics.meter, regional);
	return { peerings, regional };
}

/** Keeps copies up to date until the server stops. */
export function runCopies(
	{ peerings, regional }: Copies,
	started: Pick<AsyncDisposableStack, "use">,
): void {
	for (const each of regional === undefined ? [peerings] : [peerings, regional]) {
		const end = new AbortController();
		const running = each.run(end.signal);
		started.use({
			[Symbol.asyncDispose]: () => {
				end.abort(new Error("the server is stopping"));
				return running;
			},
		});
	}
}

/** The copies between the regions of the service. Meta deployments have none: each registry is its own. */
function createRegional(
	{ options, runtime, logger }: StartContext,
	{ registry, peers, unconstrained, identity, leases }: CopiesParts,
): RegionalCopies | undefined {
	const { deployment } = options;
	if (deployment === undefined || peers === undefined || deployment.service === metaService) {
		return undefined;
	}
	const { service, region } = deployment;
	const registered = new RegisteredRegions(unconstrained, { service, region });
	return createRegionalCopies({
		...{ backend: unconstrained, identity, registry, leases, runtime, logger },
		own: { service, region, uid: () => registered.ownUid() },
		regions: {
			others: () => registered.others(),
			isDeleted: (uid) => registered.isDeleted(uid),
			connect: peers.connections.open,
		},
	});
}
