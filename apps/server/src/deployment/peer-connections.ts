import type { Clock, Logger } from "@plinth/runtime";
import { followFiles } from "../security/followed-files.ts";
import { Connections } from "./connections.ts";
import { DeploymentCredential } from "./credential.ts";
import type { DeploymentOptions } from "./deployment-options.ts";

/** The other deployments: how to reach them, and how they are known. */
export interface PeerConnections {
	readonly credential: DeploymentCredential;
	readonly connections: Connections;
	/** Looks now whether the credential's file has changed. */
	reload(): Promise<void>;
	close(): void;
}

/** @throws Error where the credential's file can't be read or is refused. */
export async function openPeerConnections(
	{ credentialFile }: Pick<DeploymentOptions, "credentialFile">,
	context: { readonly clock: Clock; readonly logger: Logger },
): Promise<PeerConnections> {
	const credential = new DeploymentCredential();
	const followed = await followFiles({
		...context,
		files: { credential: credentialFile },
		take: ({ credential: text }) => credential.take(credentialFile, text),
	});
	const connections = new Connections(credential.interceptor);
	return {
		credential,
		connections,
		reload: () => followed.check(),
		close() {
			followed.close();
			connections.close();
		},
	};
}
