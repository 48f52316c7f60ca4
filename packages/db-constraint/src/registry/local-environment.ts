import { Code, ConnectError } from "@connectrpc/connect";
import type { DeploymentInfo, Environment } from "./environment.ts";

/** The environment of a server without discovery: a single deployment, identified by the uid of its storage. */
export function localEnvironment(uid: string, service = "", version = ""): Environment {
	const self: DeploymentInfo = {
		uid,
		name: "",
		service,
		region: "",
		version,
		disabled: false,
		predecessorUid: "",
	};
	return {
		self,
		deployments: () => [self],
		byUid: (requested) => (requested === uid ? self : undefined),
		successorOf: () => undefined,
		find: (name, region) => (name === service && region === "" ? self : undefined),
		findOwner: (_group, name, region) => (name === "" && region === "" ? self : undefined),
		client: (requested) => {
			throw new ConnectError(
				`deployment ${requested} is not known: discovery is not configured`,
				Code.Unavailable,
			);
		},
		isDeleted: async () => false,
		onChange: () => () => {},
	};
}
