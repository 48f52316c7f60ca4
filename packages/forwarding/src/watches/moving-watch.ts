import { Code, ConnectError } from "@connectrpc/connect";
import { codeFromHttpStatus } from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import type { Timer } from "@plinth/runtime";
import type { CallAttempts } from "../call/call-attempts.ts";
import type { CallEnvironment, RetryReason } from "../call/call-environment.ts";
import type { ClientResponse } from "../call/client-response.ts";
import type { RequestBody } from "../call/request-body.ts";
import { type ResponseHead, responseFields } from "../headers/response-headers.ts";
import type { Fields, InboundCall } from "../inbound-call.ts";
import { cutInSnapshot, FollowedWatch } from "./followed-watch.ts";
import { MovePauses, type StreamFailure } from "./move-pauses.ts";
import type { WatchMethod } from "./scanned-message.ts";

/** The call of a watch, as far as the watch decides about it. */
export interface WatchCall {
	/** Whether it has not ended. */
	readonly isOpen: boolean;
	/** Begins the next attempt. */
	send(): void;
	/** Sends the call of a watch that has not begun once more. */
	sendAgain(why: RetryReason, reason: string): void;
	complete(last: Uint8Array | undefined, trailers: Fields | undefined): void;
	fail(error: ConnectError): void;
}

/** What a watch shares with its call. */
export interface WatchParts {
	readonly environment: CallEnvironment;
	readonly inbound: InboundCall;
	readonly body: RequestBody;
	readonly attempts: CallAttempts;
	readonly response: ClientResponse;
}

/**
 * A call of WatchList or WatchSet, which goes on at another server when one is lost, stops, or responds with Unavailable.
 *
 *   nothing was passed on      ─▶ it is sent again as any other read
 *   the position is known      ─▶ a request that continues after it, at once or after a pause
 *   the position is not known  ─▶ Unavailable; within a snapshot, Aborted
 *
 * A server that was removed still serves its watches: they leave it when their positions are known and another server can be
 * called, so that none of them ends because of it.
 *
 * Invariant: there is at most one attempt or one timer for the next one. {@link FollowedWatch} has what holds for the events.
 */
export class MovingWatch {
	readonly #method: WatchMethod;
	readonly #call: WatchCall;
	readonly #parts: WatchParts;
	readonly #pauses: MovePauses;
	/** The watch, if it can be continued at another server; known once its request is complete. */
	#followed: FollowedWatch | undefined;
	#nextAttempt: Timer | undefined;

	constructor(method: WatchMethod, call: WatchCall, parts: WatchParts) {
		const { clock, random, limits } = parts.environment;
		this.#method = method;
		this.#call = call;
		this.#parts = parts;
		this.#pauses = new MovePauses(clock, random, limits.watchMoveMs);
	}

	/** Whether what servers send is followed, so that the watch can be continued. */
	get isFollowed(): boolean {
		return this.#followed !== undefined;
	}

	/** Whether what was passed on ends at the end of a message; `undefined` if the watch is not followed. */
	get isAtBoundary(): boolean | undefined {
		return this.#followed?.isAtBoundary;
	}

	/** Whether the message that ends the stream has come. */
	get hasEndFrame(): boolean {
		return this.#followed?.endFrame !== undefined;
	}

	/** Whether the client has received nothing but a head, to which the response of another server fits. */
	get canBeginAgain(): boolean {
		return this.#followed?.hasBegun === false;
	}

	/** The request is complete, or will not be kept: the first attempt follows. */
	requestKnown(): void {
		this.#followed = this.#begin();
		if (this.#followed !== undefined) {
			this.#parts.attempts.beginWith(this.#followed.firstRequest);
			// The watch has its request.
			this.#parts.body.release();
		}
	}

	/** An attempt begins. */
	attemptBegins(): void {
		this.#pauses.begun();
	}

	/** The first head of a response is passed on. Returns whether the watch is followed from now on. */
	follow(head: ResponseHead): boolean {
		this.#followed ??= this.#begin();
		if (!isReadable(head) || this.#followed?.canRead(head) !== true) {
			this.#followed?.close();
			this.#followed = undefined;
		}
		this.#pauses.responded();
		return this.isFollowed;
	}

	/** A chunk has come while the watch is followed. Returns a promise if the next one must wait. */
	received(chunk: Uint8Array): Promise<void> | undefined {
		const { environment, attempts, response } = this.#parts;
		const watch = this.#followed;
		if (watch === undefined) {
			return undefined;
		}
		const { hasRefused } = watch;
		const { bytes, isLost, mustMove } = watch.receive(chunk);
		let waiting: Promise<void> | undefined;
		if (bytes !== undefined) {
			if (!watch.hasRefused) {
				this.#pauses.progressed();
			}
			environment.position.shown(watch.shown);
			waiting = response.passOfWatch(bytes);
		}
		if (isLost) {
			watch.release();
			this.#call.fail(cutOff("the server that continues it has sent what can't be read"));
		} else if (mustMove) {
			this.continueElsewhere(
				`${attempts.server?.address} has refused a watch of the set`,
				hasRefused ? "refused-again" : "refused",
			);
		} else {
			this.leaveRemovedServer();
		}
		return waiting;
	}

	/** The head of the response with which the watch goes on has come. Nothing of it is passed on. */
	respondedAgain(address: string, head: ResponseHead): void {
		if (isReadable(head) && this.#followed?.canRead(head) === true) {
			this.#pauses.responded();
			this.leaveRemovedServer();
			return;
		}
		const status = Number(head[":status"]);
		const refusal =
			findTrailerError(new Headers(responseFields(head))) ??
			new ConnectError(
				`the watch was cut off, and could not be continued: ${address} responded with status ${status} and content type ${head["content-type"]}`,
				status === 200 ? Code.Unavailable : codeFromHttpStatus(status),
			);
		this.#call.fail(refusal);
	}

	/** A server has ended the stream of a watch that is followed. */
	ended(trailers: Fields): void {
		const watch = this.#followed;
		if (watch === undefined) {
			return;
		}
		const fields = responseFields(trailers);
		const end = watch.endOf(fields);
		if (end.kind === "missing" || end.error?.code === Code.Unavailable) {
			const reason =
				end.kind === "missing" || end.error === undefined
					? "the server ended its response early"
					: end.error.rawMessage;
			this.#parts.attempts.server?.health.wasUnavailable();
			if (this.continueElsewhere(reason, end.kind === "missing" ? "cut" : "refused")) {
				return;
			}
			if (!watch.hasBegun && this.#parts.attempts.hasAnotherServer) {
				this.#call.sendAgain("read", reason);
				return;
			}
			if (end.kind === "missing") {
				this.#call.fail(new ConnectError(reason, Code.Unavailable));
				return;
			}
		}
		if (this.#call.isOpen) {
			this.#call.complete(watch.endFrame, fields);
		}
	}

	/** Continues the watch, which was cut off, at another server. Returns false if it has not begun, or can't be followed. */
	continueElsewhere(reason: string, failure: StreamFailure): boolean {
		this.#followed ??= this.#begin();
		const watch = this.#followed;
		if (!this.#call.isOpen || watch?.hasBegun !== true) {
			return false;
		}
		const { attempts, response } = this.#parts;
		const last = attempts.leave();
		const next = watch.moveOn();
		switch (next.kind) {
			case "in-snapshot":
				this.#call.fail(new ConnectError(`${cutInSnapshot}. ${reason}`, Code.Aborted));
				break;
			case "unknown":
				this.#call.fail(cutOff(reason));
				break;
			case "all-ended":
				this.#call.complete(
					Buffer.concat([next.ends, watch.ok.frame ?? new Uint8Array()]),
					watch.ok.trailers,
				);
				break;
			case "request":
				if (next.ends.length > 0) {
					void response.passOfWatch(next.ends);
				}
				attempts.replaceRequest(next.body);
				if (last !== undefined) {
					attempts.forgetTriedBut(last);
				}
				this.#sendLater(watch, reason, failure);
		}
		return true;
	}

	/** Continues the watch at another server if its own was removed, as soon as that is possible. */
	leaveRemovedServer(): void {
		const { attempts } = this.#parts;
		if (attempts.shouldMove && this.#followed?.canMove === true) {
			this.continueElsewhere(`${attempts.server?.address} is no longer one of the servers`, "cut");
		}
	}

	/** Drops what is held of a message. */
	release(): void {
		this.#followed?.release();
	}

	/** The call has ended. */
	close(): void {
		this.#nextAttempt?.cancel();
		this.#followed?.close();
	}

	#sendLater(watch: FollowedWatch, reason: string, failure: StreamFailure): void {
		const { environment, response } = this.#parts;
		const { clock, limits } = environment;
		const pauseMs = this.#pauses.failed(failure);
		if (pauseMs === undefined && watch.hasRefused) {
			void response.passOfWatch(watch.endRefused());
			this.#pauses.progressed();
			this.continueElsewhere(reason, failure);
			return;
		}
		if (pauseMs === undefined) {
			const message = `the watch was cut off, and no server has continued it in ${limits.watchMoveMs / 1000} s: ${reason}`;
			this.#call.fail(new ConnectError(message, Code.Unavailable));
			return;
		}
		this.#nextAttempt = clock.setTimer(pauseMs, () => this.#call.send());
	}

	/** Begins to follow the watch, if all of its request is known and can be read. */
	#begin(): FollowedWatch | undefined {
		const { environment, inbound, body } = this.#parts;
		const { whole } = body;
		const contentType = inbound.header("content-type");
		return whole && FollowedWatch.of(this.#method, contentType, whole, environment);
	}
}

/** Whether it is the head of a response that has more than its head. */
function isReadable(head: ResponseHead): boolean {
	return head[":status"] === "200" && head["grpc-status"] === undefined;
}

function cutOff(reason: string): ConnectError {
	return new ConnectError(`the response was cut off: ${reason}`, Code.Unavailable);
}
