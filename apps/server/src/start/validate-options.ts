import { metaService, metaTypes, ResourceShadow } from "@plinth/db-constraint";
import { peeringTypes } from "@plinth/peering";
import type { Authorizer, TypeRegistry } from "@plinth/resource";
import { Namespace, Partition, Tombstone } from "@plinth/resource";
import { openPeerConnections, type PeerConnections } from "../deployment/peer-connections.ts";
import type { OriginPolicy } from "../listener/origin/origin-check.ts";
import { type FollowedTls, followTls } from "../listener/tls/followed-tls.ts";
import { checkControllers } from "../module/check-controllers.ts";
import { registerTypes } from "../module/register-types.ts";
import { followFiles } from "../security/followed-files.ts";
import { checkExposure, openAccess } from "../security/open-access.ts";
import { originPolicy } from "../security/origin-policy.ts";
import { SharedSecrets } from "../security/shared-secrets.ts";
import { defaultListen } from "../server-options.ts";
import type { StartContext } from "./start-context.ts";

/** The options of a server, with the files that they name read and followed. */
export interface ValidatedOptions {
	readonly authorizer: Authorizer;
	readonly origins: OriginPolicy;
	readonly tls: FollowedTls | undefined;
	readonly registry: TypeRegistry;
	readonly peers: PeerConnections | undefined;
	/** The credentials of agents, if there is a port for them. */
	readonly agentSecrets: SharedSecrets | undefined;
	/** Each checks now whether files have changed. */
	readonly reloads: readonly (() => Promise<void>)[];
}

/**
 * Checks everything that an operator can get wrong, before a storage or a port is opened.
 *
 * @throws Error that names the option or file that is wrong.
 */
export async function validateOptions(context: StartContext): Promise<ValidatedOptions> {
	const { options, logger, modules, runtime, started } = context;
	const { deployment, agents, listen = defaultListen } = options;
	const { clock } = runtime;
	const reloads: (() => Promise<void>)[] = [];
	const access = await openAccess(options, { clock, logger });
	started.defer(() => access.close());
	reloads.push(() => access.reload());
	const { authorizer } = access;
	const allowAnonymous = options.allowAnonymous ?? false;
	checkExposure(listen, authorizer, allowAnonymous);
	if (agents !== undefined) {
		// All who reach an agent would have full rights: its credential adds none, and takes none away.
		checkExposure(agents.listen, authorizer, allowAnonymous);
	}
	const origins = originPolicy(options, listen, authorizer);
	const tls = options.tls && (await followTls(options.tls, { clock, logger }));
	if (tls !== undefined) {
		started.defer(() => tls.close());
		reloads.push(() => tls.check());
	}
	const registry: TypeRegistry = registerTypes(
		[
			...[Tombstone, Partition, Namespace, ResourceShadow],
			...peeringTypes(() => registry),
			...(deployment?.service === metaService ? metaTypes : []),
		],
		modules,
		deployment?.service,
	);
	checkControllers(modules, registry);
	const peers = deployment && (await openPeerConnections(deployment, { clock, logger }));
	if (peers !== undefined) {
		started.defer(() => peers.close());
		reloads.push(() => peers.reload());
	}
	const agentSecrets = agents && new SharedSecrets();
	if (agents !== undefined) {
		const followed = await followFiles({
			...{ clock, logger },
			files: { credential: agents.credentialFile },
			apply: ({ credential }) => agentSecrets?.replace(agents.credentialFile, credential),
		});
		started.defer(() => followed.close());
		reloads.push(() => followed.check());
	}
	return { authorizer, origins, tls, registry, peers, agentSecrets, reloads };
}
