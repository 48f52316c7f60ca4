import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { isPlanted } from "../fault-points.ts";

/** Whether a server may listen at an address: whether it is an http or https URL. */
export function isServerAddress(address: string): boolean {
	const protocol = URL.parse(address)?.protocol;
	return protocol === "http:" || protocol === "https:";
}

/**
 * The same as `connect`, but never throws. Addresses come from other deployments and from operators: calls to a malformed
 * one fail with Unavailable, like calls to one where no server runs.
 */
export function connectAnywhere(
	connect: (address: string, announced?: string) => Transport,
): (address: string, announced?: string) => Transport {
	return (address, announced) => {
		try {
			return connect(address, announced);
		} catch (failure) {
			if (isPlanted("fail where the address of another server is malformed")) {
				throw failure;
			}
			const message = `no server can be called at "${address}": ${ConnectError.from(failure).rawMessage}`;
			const refuse = () => Promise.reject(new ConnectError(message, Code.Unavailable));
			return { unary: refuse, stream: refuse };
		}
	};
}
