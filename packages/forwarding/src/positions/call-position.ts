import type { InboundCall } from "../inbound-call.ts";
import { pagesHeader } from "../pages/list-servers.ts";
import {
	type ClusterPosition,
	notBeforeHeader,
	positionHeader,
	versionOf,
} from "./cluster-position.ts";

/** What a response says about its position: nothing special, or that it is not what the agent should pass on. */
type Verdict = "pass-on" | "send-again";

/**
 * The position of one call: the version that its response must not be older than, which is the newest of what its client has
 * named and what the agent has passed on.
 */
export class CallPosition {
	readonly #cluster: ClusterPosition;
	/** What the client has named: a version, nothing, or a text for the server to refuse. */
	readonly #named: number | "nothing" | "malformed";
	#sent = 0;
	/** The position of the agent when the request was sent. */
	#newestSent = 0;
	#wasRefused = false;

	constructor(cluster: ClusterPosition, call: Pick<InboundCall, "header">) {
		this.#cluster = cluster;
		const header = call.header(notBeforeHeader);
		this.#named =
			header === undefined || header === "" ? "nothing" : (versionOf(header) ?? "malformed");
	}

	/** The headers of a request, which is sent now. */
	headers(): Readonly<Record<string, string>> {
		if (this.#named === "malformed") {
			return {};
		}
		this.#newestSent = this.#cluster.newest;
		this.#sent = Math.max(this.#own, this.#newestSent);
		return { [notBeforeHeader]: String(this.#sent) };
	}

	/**
	 * The head of a response has come. A position that is lower than the one of the request means that the server has refused
	 * the call, before it did anything: its storage is another one. Unless it is the client that has named a higher one, the
	 * call is sent again, once.
	 */
	responded(headers: Readonly<Record<string, unknown>>): Verdict {
		const position = versionOf(headers[positionHeader]);
		if (position === undefined) {
			return "pass-on";
		}
		if (position >= this.#sent) {
			this.#cluster.shown(position);
			return "pass-on";
		}
		if (position < this.#newestSent) {
			this.#cluster.refused(position);
		}
		if (this.#wasRefused || this.#own > position) {
			return "pass-on";
		}
		this.#wasRefused = true;
		return "send-again";
	}

	/** The fields of a response for the client, which gets a position only if it has named one. */
	fieldsFor<Value>(fields: Readonly<Record<string, Value>>): Readonly<Record<string, Value>> {
		if (this.#named !== "nothing") {
			return fields;
		}
		const { [positionHeader]: _position, [pagesHeader]: _pages, ...others } = fields;
		return others;
	}

	get #own(): number {
		return typeof this.#named === "number" ? this.#named : 0;
	}
}
