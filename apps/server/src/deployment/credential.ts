import { createHash, timingSafeEqual } from "node:crypto";
import { Code, ConnectError, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { FileError } from "../configuration/located-yaml.ts";

/** The length of the shortest credential that is accepted: a shorter one could be guessed. */
const shortest = 16;

/** The credential that deployments share, as it is in its file now. */
export class DeploymentCredential {
	#all: readonly string[] = [];

	/**
	 * Replaces the accepted credentials by those in the file, one per line. The first one is sent.
	 *
	 * @throws FileError if there is none, or one is too short.
	 */
	replace(file: string, text: string): void {
		const all = text
			.split("\n")
			.map((line) => line.trim())
			.filter((line) => line !== "");
		if (all.length === 0 || all.some((each) => each.length < shortest)) {
			throw new FileError(
				`${file} must contain a credential of at least ${shortest} characters per line: create one with plinth-server new-token`,
			);
		}
		this.#all = all;
	}

	/** Sends the credential with each call. */
	get interceptor(): Interceptor {
		return (next) => (request) => {
			request.header.set("authorization", `Bearer ${this.#all[0] ?? ""}`);
			return next(request);
		};
	}

	/** @throws ConnectError Unauthenticated if a call does not carry it. */
	check({ requestHeader }: Pick<HandlerContext, "requestHeader">): void {
		const header = requestHeader.get("authorization") ?? "";
		const sent = hash(header.startsWith("Bearer ") ? header.slice("Bearer ".length) : "");
		if (!this.#all.some((each) => timingSafeEqual(hash(each), sent))) {
			throw new ConnectError(
				"the credential of the deployments is missing or wrong",
				Code.Unauthenticated,
			);
		}
	}
}

function hash(text: string): Buffer {
	return createHash("sha256").update(text).digest();
}
