import { createHash, timingSafeEqual } from "node:crypto";
import { Code, ConnectError, type HandlerContext, type Interceptor } from "@connectrpc/connect";

/** What is too short to be kept from being guessed. */
const shortest = 16;

/** The credential that deployments share, as its file has it now. */
export class DeploymentCredential {
	#all: readonly string[] = [];

	/**
	 * Takes what the file has: a credential a line, the one to be sent first.
	 *
	 * @throws Error where there is none, or one is too short.
	 */
	take(file: string, text: string): void {
		const all = text
			.split("\n")
			.map((line) => line.trim())
			.filter((line) => line !== "");
		if (all.length === 0 || all.some((each) => each.length < shortest)) {
			throw new Error(
				`${file} must have a credential of at least ${shortest} characters on each line: make one with plinth-server new-token`,
			);
		}
		this.#all = all;
	}

	/** Sends it with each call. */
	get interceptor(): Interceptor {
		return (next) => (request) => {
			request.header.set("authorization", `Bearer ${this.#all[0] ?? ""}`);
			return next(request);
		};
	}

	/** @throws ConnectError Unauthenticated where a call does not carry it. */
	check({ requestHeader }: Pick<HandlerContext, "requestHeader">): void {
		const header = requestHeader.get("authorization") ?? "";
		const given = hash(header.startsWith("Bearer ") ? header.slice("Bearer ".length) : "");
		if (!this.#all.some((each) => timingSafeEqual(hash(each), given))) {
			throw new ConnectError(
				"the credential of the deployments is missing, or is not theirs",
				Code.Unauthenticated,
			);
		}
	}
}

function hash(text: string): Buffer {
	return createHash("sha256").update(text).digest();
}
