import { randomBytes, timingSafeEqual } from "node:crypto";
import { internalHeader } from "@plinth/forwarding/headers";
import type { HttpRequest } from "../listener/request-handler.ts";

/**
 * What an agent's own calls carry, so that no other program on its machine can make them. It is in a header that agents never pass
 * on: a server gets the agent's credential there instead.
 */
export class OwnSecret {
	readonly #bytes = Buffer.from(randomBytes(32).toString("base64url"));

	/** The headers of the agent's own calls. */
	get headers(): Readonly<Record<string, string>> {
		return { [internalHeader]: this.#bytes.toString() };
	}

	/** Whether a request carries the secret. Takes as long for each text of the same length. */
	isIn(request: Pick<HttpRequest, "header">): boolean {
		const sent = Buffer.from(request.header(internalHeader) ?? "");
		return sent.byteLength === this.#bytes.byteLength && timingSafeEqual(sent, this.#bytes);
	}
}
