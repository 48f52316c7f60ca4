import { Code } from "@connectrpc/connect";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import type { KeptBytes } from "../call/kept-bytes.ts";
import type { Fields } from "../inbound-call.ts";
import { encodeField, encodeNumberField } from "../messages/protobuf-fields.ts";
import { versionOf } from "../positions/cluster-position.ts";
import { MessageBuffer, messageOf, type Piece } from "./message-buffer.ts";
import { binaryScanner } from "./scan-binary.ts";
import { jsonScanner } from "./scan-json.ts";
import type { MessageScanner, WatchMethod } from "./scanned-message.ts";
import { type StreamEnd, type StreamProtocol, streamProtocol } from "./stream-protocol.ts";
import { type Decision, WatchPosition } from "./watch-position.ts";
import { type Resumption, readRequest, type WatchRequest } from "./watch-request.ts";

/** What is done with a chunk of a response. */
export interface Received {
	/** What of it, and of earlier chunks, is passed on. */
	readonly bytes: Uint8Array | undefined;
	/** Whether the stream must end, because a message may repeat another one and can't be read. */
	readonly isLost: boolean;
	/** Whether the watch must go on at another server, because this one has refused a watch of the set as unavailable. */
	readonly mustMove: boolean;
}

/** How a watch goes on whose server is lost. */
export type NextRequest =
	/** With this body, at another server. `ends` are passed on first: the ends of watches of a set that can't go on. */
	| { readonly kind: "request"; readonly body: Uint8Array; readonly ends: Uint8Array }
	/** Not at all: no watch of the set can go on. */
	| { readonly kind: "all-ended"; readonly ends: Uint8Array }
	/** Not at all: a part of the snapshot was passed on. */
	| { readonly kind: "in-snapshot" }
	/** Not at all: what was passed on is not known. */
	| { readonly kind: "unknown" };

/** The message for a watch whose snapshot was cut off. */
export const cutInSnapshot = "the watch was cut off before its snapshot was complete: watch again";

/** The largest end of a watch that is held while the watch is requested elsewhere, in bytes. */
const heldEndBytes = 8_192;

/** Limits on what is kept for a watch. */
export interface FollowedWatchLimits {
	/** The size of the largest message that is held until it is complete, in bytes. */
	readonly watchMessageBytes: number;
	/** The size of the largest request whose watch is continued, in bytes. */
	readonly watchRequestBytes: number;
}

/** What watches that are followed share. */
export interface FollowedWatchEnvironment {
	readonly limits: FollowedWatchLimits;
	/** For messages that are held. */
	readonly memory: Pick<KeptBytes, "take" | "give">;
	/** For the requests of watches. */
	readonly watchRequests: Pick<KeptBytes, "take" | "give">;
}

/**
 * The stream of a WatchList or WatchSet as one client receives it from several servers, one after the other: follows the
 * position of each watch in what is passed on, and makes the requests that continue them.
 *
 * Invariants: what is passed on ends at the end of a message, unless a message was too large to be held; and of the events
 * of each watch, as its {@link WatchPosition} decides, each is passed on once.
 *
 * A server may refuse single watches of a set as unavailable, for example if it can't reach its storage in time. They are
 * continued like those of a server that is lost: what they have refused is passed on only if no other server does better.
 */
export class FollowedWatch {
	readonly #method: WatchMethod;
	readonly #protocol: StreamProtocol;
	readonly #request: WatchRequest;
	readonly #scan: MessageScanner;
	readonly #buffer: MessageBuffer;
	/** Gives back the memory of the request. */
	#forget: () => void;
	/** The watches that have not ended, by their ids. */
	readonly #positions = new Map<string, WatchPosition>();
	#end: Uint8Array | undefined;
	/** The ends of watches that servers have refused as unavailable, and that have sent nothing since, by their ids. */
	readonly #refused = new Map<string, Uint8Array>();
	/**
	 * The newest version in what `receive` has last passed on, as far as it is known. What was passed on before may be of a
	 * storage that was replaced by another one, whose versions are lower.
	 */
	shown = 0;

	/** Begins to follow a call. Returns `undefined` if its request can't be read: then its watch can't be continued. */
	static of(
		method: WatchMethod,
		contentType: string | undefined,
		body: Uint8Array,
		{ limits, memory, watchRequests }: FollowedWatchEnvironment,
	): FollowedWatch | undefined {
		const protocol = streamProtocol(contentType);
		if (protocol === undefined || body.length > limits.watchRequestBytes) {
			return undefined;
		}
		const [piece, ...more] = new MessageBuffer(0, memory).add(body);
		if (piece?.kind !== "message" || piece.flags !== 0 || more.length > 0) {
			return undefined;
		}
		try {
			const request = readRequest(method, protocol.format, messageOf(piece));
			const buffer = new MessageBuffer(limits.watchMessageBytes, memory);
			// Without room it is not continued, which is better than not to begin.
			return watchRequests.take(body.length)
				? new FollowedWatch(method, protocol, request, buffer, () =>
						watchRequests.give(body.length),
					)
				: undefined;
		} catch {
			// The server says what is wrong with it.
			return undefined;
		}
	}

	private constructor(
		method: WatchMethod,
		protocol: StreamProtocol,
		request: WatchRequest,
		buffer: MessageBuffer,
		forget: () => void,
	) {
		this.#method = method;
		this.#protocol = protocol;
		this.#request = request;
		this.#scan = (protocol.format === "json" ? jsonScanner : binaryScanner)(method);
		this.#buffer = buffer;
		this.#forget = forget;
		for (const [id, version] of request.versions) {
			this.#positions.set(id, new WatchPosition(version));
		}
	}

	/** The request to send first. */
	get firstRequest(): Uint8Array {
		return encodeEnvelope(
			0,
			this.#request.resumed(() => "as-requested"),
		);
	}

	/** Whether the client has received something, has named a version to resume after, or was spared a refusal. */
	get hasBegun(): boolean {
		return (
			this.#refused.size > 0 ||
			[...this.#request.versions.values()].some((version) => version !== "") ||
			this.#positions.size < this.#request.versions.size ||
			[...this.#positions.values()].some(({ hasBegun }) => hasBegun)
		);
	}

	/** Whether all of its watches can go on at another server, so that nothing ends if the current one is left. */
	get canMove(): boolean {
		return (
			this.hasBegun &&
			this.#end === undefined &&
			this.isAtBoundary &&
			[...this.#positions.values()].every(
				({ continuation: { kind } }) => kind === "after" || kind === "from-the-beginning",
			)
		);
	}

	/** Whether a watch of the set was refused, and has sent nothing since. */
	get hasRefused(): boolean {
		return this.#refused.size > 0;
	}

	/** Whether what was passed on ends at the end of a message. */
	get isAtBoundary(): boolean {
		return this.#buffer.isAtBoundary;
	}

	/** The message that ends the stream, if the protocol has one and it has come. It is held back. */
	get endFrame(): Uint8Array | undefined {
		return this.#end;
	}

	/** Whether a response can be read, and be passed on as the rest of the one that has begun. */
	canRead(headers: Readonly<Record<string, unknown>>): boolean {
		const [requested, responded] = [
			this.#protocol,
			streamProtocol(String(headers["content-type"])),
		];
		const encoding = headers["grpc-encoding"] ?? headers["connect-content-encoding"] ?? "identity";
		return (
			encoding === "identity" &&
			headers["content-encoding"] === undefined &&
			requested.endFlag === responded?.endFlag &&
			requested.format === responded?.format
		);
	}

	/** Decides what of the next chunk is passed on. */
	receive(chunk: Uint8Array): Received {
		this.shown = 0;
		const passed: Uint8Array[] = [];
		let isLost = false;
		let mustMove = false;
		for (const piece of this.#buffer.add(chunk)) {
			const decision = this.#decide(piece);
			isLost = decision === "lost";
			mustMove = decision === "move";
			if (isLost || mustMove) {
				break;
			}
			if (decision === "pass") {
				passed.push(piece.bytes);
			}
		}
		const bytes = passed.length > 1 ? Buffer.concat(passed) : passed[0];
		return { bytes, isLost, mustMove };
	}

	/** How the stream has ended, as far as the server has said so. */
	endOf(trailers: Fields): StreamEnd {
		return this.#protocol.endOf(this.#end && messageOf({ bytes: this.#end }), trailers);
	}

	/** The end of a stream that was successful. */
	get ok(): StreamProtocol["ok"] {
		return this.#protocol.ok;
	}

	/** The server is lost. Returns how the watch goes on; events that come after this are those of another server. */
	moveOn(): NextRequest {
		if (!this.isAtBoundary) {
			return { kind: "unknown" };
		}
		this.release();
		const resumptions = new Map<string, Resumption>();
		const ends: Uint8Array[] = [];
		for (const [id, position] of this.#positions) {
			const { continuation } = position;
			switch (continuation.kind) {
				case "from-the-beginning":
					resumptions.set(id, "as-requested");
					break;
				case "after":
					resumptions.set(id, { after: continuation.version });
					break;
				default:
					if (this.#method === "WatchList") {
						return continuation;
					}
					ends.push(this.#endOfWatch(id, continuation.kind));
					this.#positions.delete(id);
			}
			position.continued();
		}
		if (this.#positions.size === 0) {
			return { kind: "all-ended", ends: Buffer.concat(ends) };
		}
		const message = this.#request.resumed((id) => resumptions.get(id) ?? "omitted");
		return { kind: "request", body: encodeEnvelope(0, message), ends: Buffer.concat(ends) };
	}

	/** No server has continued the refused watches in time. Returns their ends, which are passed on. */
	endRefused(): Uint8Array {
		const ends = [...this.#refused.values()];
		for (const id of this.#refused.keys()) {
			this.#positions.delete(id);
		}
		this.#refused.clear();
		return Buffer.concat(ends);
	}

	/** It is followed no longer. */
	close(): void {
		this.release();
		this.#forget();
		this.#forget = () => {};
	}

	/** Drops what is held of a message. */
	release(): void {
		this.#buffer.release();
		this.#end = undefined;
	}

	#decide(piece: Piece): Decision | "move" {
		if (piece.kind === "part") {
			return this.#decideUnread();
		}
		const { endFlag } = this.#protocol;
		if (endFlag !== undefined && (piece.flags & endFlag) !== 0) {
			this.#end = new Uint8Array(piece.bytes);
			return "skip";
		}
		return piece.flags === 0 ? this.#decideMessage(piece) : this.#decideUnread();
	}

	#decideMessage(piece: { readonly bytes: Uint8Array }): Decision | "move" {
		let scanned: ReturnType<MessageScanner>;
		try {
			scanned = this.#scan(messageOf(piece));
		} catch {
			return this.#decideUnread();
		}
		const { watchId, content } = scanned;
		if (content.kind === "end") {
			if (content.code === Code.Unavailable && this.#refuse(watchId, piece.bytes)) {
				return "move";
			}
			this.#refused.delete(watchId);
			this.#positions.delete(watchId);
			return "pass";
		}
		this.#refused.delete(watchId);
		const decision = this.#positions.get(watchId)?.decide(content) ?? this.#decideUnread();
		if (content.kind === "bookmark" && !this.#request.bookmarked.has(watchId)) {
			// The agent has asked for it, so that the position of a quiet watch does not fall behind.
			return "skip";
		}
		if (decision === "pass") {
			this.shown = Math.max(this.shown, versionOf(content.shows) ?? 0);
		}
		return decision;
	}

	/** A server refuses a watch. Returns false if no other server can continue it. */
	#refuse(watchId: string, end: Uint8Array): boolean {
		const kind = this.#positions.get(watchId)?.continuation.kind;
		const canContinue = kind === "after" || kind === "from-the-beginning";
		if (!canContinue || end.length > heldEndBytes || !this.isAtBoundary) {
			return false;
		}
		this.#refused.set(watchId, Uint8Array.from(end));
		return true;
	}

	/** Decides on a message of an unknown watch. */
	#decideUnread(): Decision {
		let decision: Decision = "pass";
		for (const position of this.#positions.values()) {
			if (position.decideUnread() === "lost") {
				decision = "lost";
			}
		}
		return decision;
	}

	/** The message that ends a watch of a set. */
	#endOfWatch(id: string, why: "in-snapshot" | "unknown"): Uint8Array {
		const [code, message] =
			why === "in-snapshot"
				? [Code.Aborted, cutInSnapshot]
				: [Code.Unavailable, "the watch was cut off: resume it after its last version"];
		if (this.#protocol.format === "json") {
			const event = { watchId: id, end: { code, message } };
			return encodeEnvelope(0, Buffer.from(JSON.stringify(event)));
		}
		const end = Buffer.concat([encodeNumberField(1, code), encodeField(2, Buffer.from(message))]);
		return encodeEnvelope(0, Buffer.concat([encodeField(1, Buffer.from(id)), encodeField(3, end)]));
	}
}
