import { Code, ConnectError, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { SharedSecrets } from "../security/shared-secrets.ts";

/** The credential that deployments share, as it is in its file now. */
export class DeploymentCredential {
	readonly #secrets = new SharedSecrets();

	/**
	 * Replaces the accepted credentials by those in the file, one per line. The first one is sent.
	 *
	 * @throws FileError if there is none, or one is too short.
	 */
	replace(file: string, text: string): void {
		this.#secrets.replace(file, text);
	}

	/** Sends the credential with each call. */
	get interceptor(): Interceptor {
		return (next) => (request) => {
			request.header.set("authorization", `Bearer ${this.#secrets.first}`);
			return next(request);
		};
	}

	/** @throws ConnectError Unauthenticated if a call does not carry it. */
	check({ requestHeader }: Pick<HandlerContext, "requestHeader">): void {
		const header = requestHeader.get("authorization") ?? "";
		if (
			!this.#secrets.accepts(header.startsWith("Bearer ") ? header.slice("Bearer ".length) : "")
		) {
			throw new ConnectError(
				"the credential of the deployments is missing or wrong",
				Code.Unauthenticated,
			);
		}
	}
}
