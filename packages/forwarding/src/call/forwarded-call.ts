import { Code, ConnectError } from "@connectrpc/connect";
import { errorCode } from "@plinth/http2";
import type { Deadline } from "@plinth/runtime";
import { outcomeUnknown } from "../errors/outcome-unknown.ts";
import { requestHeaders } from "../headers/request-headers.ts";
import { isUnavailable, type ResponseHead, responseFields } from "../headers/response-headers.ts";
import { timeoutMs } from "../headers/timeout.ts";
import type { Fields, InboundCall, InboundListener } from "../inbound-call.ts";
import { pagesHeader } from "../pages/list-servers.ts";
import { pageKeyOf } from "../pages/page-key.ts";
import { CallPosition } from "../positions/call-position.ts";
import { MovingWatch, type WatchCall } from "../watches/moving-watch.ts";
import { CallExecution } from "../writes/call-execution.ts";
import type { Attempt, EarlyEnd } from "./attempt.ts";
import { type AttemptEvents, CallAttempts } from "./call-attempts.ts";
import type { CallEnvironment, CallMethod, Outcome, RetryReason } from "./call-environment.ts";
import { ClientResponse } from "./client-response.ts";
import { RequestBody } from "./request-body.ts";

/**
 * One call on its way to a server and back.
 *
 *   a server did not begin the call  ─▶ it is sent to another one
 *   a server was lost before it has responded
 *       and the call changes nothing ─▶ it is sent to another one
 *       and it is a conditional write─▶ it is sent to another one; a conflict is then Unavailable as well
 *       and it may change something  ─▶ Unavailable: it may have been executed
 *   a server was lost after that     ─▶ the response ends with Unavailable, or by a reset
 *       and the call is a watch      ─▶ it goes on at another server, where the last one was cut off
 *   a server has reset the call      ─▶ the call is reset
 *       and one before may have executed it ─▶ Unavailable: it may have been executed
 *   the client is gone               ─▶ the stream to the server is reset
 *
 * {@link CallAttempts} sends it, {@link CallExecution} knows what servers may have done, {@link MovingWatch} is what a watch
 * does in addition, and {@link ClientResponse} is the way back.
 *
 * Invariants:
 *
 * - A call that may change something is sent again only if no server has begun it, or if it has a condition that no longer
 *   holds once it was executed.
 * - Once a call that may change something may have been executed, the client gets its result, or an error that says so.
 * - Once the head of a response was passed on, nothing is sent again, but for watches.
 * - The call ends once: after `close`, nothing is sent to a server or to the client, but for the end of the response.
 */
export class ForwardedCall implements AttemptEvents, InboundListener, WatchCall {
	readonly #environment: CallEnvironment;
	readonly #call: InboundCall;
	readonly #method: CallMethod;
	readonly #onEnded: (outcome: Outcome) => void;
	readonly #body: RequestBody;
	readonly #attempts: CallAttempts;
	readonly #response: ClientResponse;
	readonly #execution: CallExecution;
	/** Its position, if its method has one. */
	readonly #position: CallPosition | undefined;
	/** What a call that is a watch does in addition. */
	readonly #watch: MovingWatch | undefined;
	#deadline: Deadline | undefined;
	#isOpen = true;

	/** @param onEnded - called once. */
	constructor(
		environment: CallEnvironment,
		call: InboundCall,
		method: CallMethod,
		onEnded: (outcome: Outcome) => void,
	) {
		const { limits, memory, logger } = environment;
		this.#environment = environment;
		this.#call = call;
		this.#method = method;
		this.#onEnded = onEnded;
		this.#body = new RequestBody(call, limits, memory, (failure) =>
			this.fail(ConnectError.from(failure, Code.Canceled)),
		);
		this.#position = method.hasPosition ? new CallPosition(environment.position, call) : undefined;
		this.#attempts = new CallAttempts(environment, call, this.#body, this.#position, this);
		this.#response = new ClientResponse(call);
		this.#execution = new CallExecution(call, method, () => this.#body.whole, logger);
		this.#watch =
			method.watch &&
			new MovingWatch(method.watch, this, {
				...{ environment, inbound: call, body: this.#body },
				...{ attempts: this.#attempts, response: this.#response },
			});
	}

	get isStream(): boolean {
		return this.#method.isStream;
	}

	get isOpen(): boolean {
		return this.#isOpen;
	}

	start(): void {
		const { agent, limits, clock, deadlines } = this.#environment;
		this.#call.listen(this);
		try {
			this.#attempts.setHeaders(requestHeaders(this.#call, agent, limits));
		} catch (failure) {
			this.fail(ConnectError.from(failure));
			return;
		}
		const limitMs = timeoutMs(this.#call);
		if (limitMs !== undefined) {
			this.#deadline = deadlines.set(clock.monotonic() + limitMs, () =>
				this.fail(new ConnectError("the operation timed out", Code.DeadlineExceeded)),
			);
		}
		if (this.#method.hasPages === true) {
			this.#body.collect(() => this.#sendList());
		} else if (this.#watch !== undefined) {
			this.#body.collect(() => this.#sendWatch());
		} else {
			this.send();
		}
	}

	/** Ends the call with an error of the agent. */
	fail(error: ConnectError): void {
		if (!this.#isOpen) {
			return;
		}
		const isAtBoundary = this.#watch?.isAtBoundary ?? this.#response.isAtBoundary;
		this.#close("failed");
		this.#response.fail(error, isAtBoundary);
	}

	/** Ends the call because the agent stops. */
	stop(error: ConnectError): void {
		const { isRepeatable, isStream } = this.#method;
		const isUnderWay = this.#attempts.server !== undefined && !isRepeatable && !isStream;
		const isUncertain = isUnderWay || this.#execution.isUncertain;
		this.fail(isUncertain ? outcomeUnknown(error.rawMessage) : error);
	}

	/** Leaves a server that was removed, if another one can continue the call: it is a watch. All other calls finish there. */
	leaveRemovedServer(): void {
		this.#watch?.leaveRemovedServer();
	}

	clientIsGone(): void {
		this.#close("canceled");
	}

	#sendWatch(): void {
		if (this.#isOpen) {
			this.#watch?.requestKnown();
			this.send();
		}
	}

	/**
	 * Sends a List, for a further page to the server that has it. If that can't be read in what was kept of the request, any
	 * server gets it: one that does not have the page refuses it.
	 */
	#sendList(): void {
		if (!this.#isOpen) {
			return;
		}
		const key = pageKeyOf(this.#call, this.#body.beginning ?? new Uint8Array());
		if (key !== undefined) {
			this.#attempts.sendOnlyTo(this.#environment.lists.serverOf(key));
		}
		this.send();
	}

	send(): void {
		this.#watch?.attemptBegins();
		if (this.#attempts.send()) {
			return;
		}
		const reason = this.#environment.noServer();
		if (this.#attempts.count > 0 && this.#watch?.continueElsewhere(reason, "refused") === true) {
			return;
		}
		const begun = this.#execution.mayHaveBegun ? "" : ", and the call was not executed";
		this.fail(this.#execution.unavailable(`no server is ready${begun}: ${reason}`));
	}

	notBegun(reason: string): void {
		this.sendAgain("not_begun", reason);
	}

	/** Sends the call once more, if that is possible. */
	sendAgain(why: RetryReason, reason: string): void {
		this.#attempts.leave();
		if (!this.#isOpen || this.#watch?.continueElsewhere(reason, "refused") === true) {
			return;
		}
		if (this.#attempts.canSendAgain) {
			this.#watch?.release();
			this.#environment.retried(why);
			this.send();
			return;
		}
		const begun = this.#execution.mayHaveBegun
			? "no server has responded"
			: "the call was not executed";
		this.fail(this.#execution.unavailable(`${begun}: ${reason}`));
	}

	responded({ server }: Attempt, head: ResponseHead): void {
		if (isUnavailable(head)) {
			server.health.wasUnavailable();
			const reason = `${server.address} responded with Unavailable`;
			if (this.#watch?.continueElsewhere(reason, "refused") === true) {
				return;
			}
			// The response of the last server is passed on, because it says more than the agent could.
			const why = this.#execution.repetition;
			if (why !== undefined && this.#attempts.hasAnotherServer) {
				this.#execution.begun();
				this.sendAgain(why, "");
				return;
			}
		}
		if (this.#response.hasBegun) {
			this.#watch?.respondedAgain(server.address, head);
			return;
		}
		if (this.#position?.responded(head) === "send-again") {
			this.sendAgain(
				"not_begun",
				"the servers have another storage than before, or a backup of it: call again",
			);
			return;
		}
		const pages = head[pagesHeader];
		if (this.#method.hasPages === true && pages !== undefined) {
			this.#environment.lists.remember(pages, server);
		}
		if (!this.#execution.hold(head)) {
			this.#passHead(head);
		}
	}

	#passHead(head: ResponseHead): void {
		if (this.#watch?.follow(head) !== true) {
			this.#body.release();
		}
		try {
			const fields = responseFields(head);
			this.#response.begin(head, this.#position?.fieldsFor(fields) ?? fields);
			this.#watch?.leaveRemovedServer();
		} catch (failure) {
			this.#environment.logger.warn(
				{ err: failure, server: this.#attempts.server?.address },
				"the head of a response could not be passed on",
			);
			this.#close("failed");
			this.#response.reset(errorCode.internalError);
		}
	}

	received(chunk: Uint8Array): Promise<void> | undefined {
		if (this.#watch?.isFollowed === true) {
			return this.#watch.received(chunk);
		}
		const { held } = this.#execution;
		if (held === undefined) {
			return this.#response.pass(chunk);
		}
		return held.add(chunk) ? undefined : this.#passHeld();
	}

	ended(trailers: Fields): void {
		if (this.#watch?.isFollowed === true && this.#response.hasBegun) {
			this.#watch.ended(trailers);
			return;
		}
		const conflict = this.#execution.conflict(trailers);
		if (conflict !== undefined) {
			this.fail(conflict);
			return;
		}
		void this.#passHeld();
		if (!this.#response.hasBegun || this.#response.isMissingBytes) {
			this.#execution.begun();
			this.fail(this.#execution.unavailable("the server ended its response early"));
			return;
		}
		if (this.#isOpen) {
			this.complete(undefined, responseFields(trailers));
		}
	}

	/** Passes on what is held of a response, and from then on the rest as it comes. */
	#passHeld(): Promise<void> | undefined {
		const { held } = this.#execution;
		if (held === undefined) {
			return undefined;
		}
		this.#execution.release();
		this.#passHead(held.head);
		return this.#response.passHeld(held.body);
	}

	endedEarly({ server }: Attempt, end: EarlyEnd): void {
		this.#attempts.leave();
		this.#execution.release();
		if (end.kind === "lost") {
			this.#execution.begun();
			server.health.connectionLost(end.reason);
		}
		if (end.kind === "reset") {
			if (this.#execution.isUncertain && !this.#response.hasBegun) {
				// A reset can't say that a server before this one may have executed the call.
				this.fail(this.#execution.unavailable(`${server.address} has reset the call`));
			} else if (this.#isOpen) {
				// As it came. The server has decided so.
				this.#close("failed");
				this.#response.reset(end.code);
			}
			return;
		}
		if (this.#watch?.hasEndFrame === true) {
			this.#watch.ended({});
			return;
		}
		const failure = end.kind === "lost" ? "cut" : "refused";
		if (this.#watch?.continueElsewhere(end.reason, failure) === true) {
			return;
		}
		const canBeginAgain = this.#watch?.canBeginAgain === true && this.#attempts.canSendAgain;
		const why = end.kind === "excluded" ? "not_begun" : this.#execution.repetition;
		if (this.#response.hasBegun && !canBeginAgain) {
			this.fail(this.#execution.unavailable(`the response was cut off: ${end.reason}`));
		} else if (why === "not_begun" || (why !== undefined && this.#attempts.canSendAgain)) {
			this.sendAgain(why, end.reason);
		} else {
			this.fail(this.#execution.lost(server.address, end.reason));
		}
	}

	/** Completes the response. */
	complete(last: Uint8Array | undefined, trailers: Fields | undefined): void {
		this.#close("completed");
		this.#response.complete(last, trailers);
	}

	#close(outcome: Outcome): void {
		if (!this.#isOpen) {
			return;
		}
		this.#isOpen = false;
		this.#deadline?.cancel();
		this.#watch?.close();
		this.#attempts.close();
		this.#body.release();
		this.#onEnded(outcome);
	}
}
