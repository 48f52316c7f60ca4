import { Code, ConnectError } from "@connectrpc/connect";
import type { DeploymentInfo, Environment } from "./environment.ts";

/** The environment of a server without discovery: there is one deployment, known by its storage's uid. */
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
		find: (name, region) => (name === service && region === "" ? self : undefined),
		findOwner: (_group, name, region) => (name === "" && region === "" ? self : undefined),
		client: (asked) => {
			throw new ConnectError(
				`deployment ${asked} is not known: there is no discovery`,
				Code.Unavailable,
			);
		},
		isDeleted: async () => false,
		onChange: () => () => {},
	};
}
