import type { Clock, Logger } from "@plinth/runtime";
import { followFiles } from "../security/followed-files.ts";
import { Connections } from "./connections.ts";
import { DeploymentCredential } from "./credential.ts";
import type { DeploymentOptions } from "./deployment-options.ts";

/** Connections to other deployments, and the credential that both sides send. */
export interface PeerConnections {
	readonly credential: DeploymentCredential;
	readonly connections: Connections;
	/** Checks now whether the file of the credential has changed. */
	reload(): Promise<void>;
	close(): void;
}

/** @throws Error if the file of the credential can't be read or is malformed. */
export async function openPeerConnections(
	{ credentialFile }: Pick<DeploymentOptions, "credentialFile">,
	context: { readonly clock: Clock; readonly logger: Logger },
): Promise<PeerConnections> {
	const credential = new DeploymentCredential();
	const followed = await followFiles({
		...context,
		files: { credential: credentialFile },
		apply: ({ credential: text }) => credential.replace(credentialFile, text),
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
