import { Code, ConnectError } from "@connectrpc/connect";
import type { Session } from "@plinth/rpc-client/session";
import { credentialHeaders, requestFields } from "../headers/request-headers.ts";
import type { InboundCall } from "../inbound-call.ts";
import type { CallPosition } from "../positions/call-position.ts";
import type { Server } from "../servers/server.ts";
import { reasonOf } from "../servers/server-health.ts";
import type { Place } from "../servers/server-network.ts";
import { isUsable } from "../servers/server-set.ts";
import { Attempt, type AttemptReader } from "./attempt.ts";
import type { CallEnvironment } from "./call-environment.ts";
import type { RequestBody } from "./request-body.ts";

/** The headers by which clients say which compression of messages they accept. */
const compressionHeaders = ["grpc-accept-encoding", "connect-accept-encoding"];

/** Receives what becomes of attempts to send a call. */
export interface AttemptEvents extends AttemptReader {
	/** The server for the call was removed before the call was sent to it: another attempt follows. */
	send(): void;
	/** The server that the call was sent to has not begun it. */
	notBegun(reason: string): void;
	/** The call can't be sent to any server. */
	fail(error: ConnectError): void;
}

/**
 * The attempts to send one call: to one server after the other, those that it was not sent to before first.
 *
 * Invariants: there is at most one current attempt. A call that waits for a connection to a server that is
 * removed goes to another one, if one can be called. After `close`, no attempt is opened, and each place that was taken is left.
 */
export class CallAttempts {
	readonly #environment: CallEnvironment;
	readonly #call: InboundCall;
	readonly #body: RequestBody;
	readonly #position: CallPosition | undefined;
	readonly #events: AttemptEvents;
	readonly #tried = new Set<Server>();
	/** The only server that the call can be sent to. */
	#onlyServer: Server | undefined;
	#headers: Record<string, string> = {};
	/** What is sent in place of the client's own request. */
	#request: Uint8Array | undefined;
	/** Whether it continues a watch. */
	#isMove = false;
	#count = 0;
	#current: Attempt | undefined;
	#isOpen = true;

	constructor(
		environment: CallEnvironment,
		call: InboundCall,
		body: RequestBody,
		position: CallPosition | undefined,
		events: AttemptEvents,
	) {
		this.#environment = environment;
		this.#call = call;
		this.#body = body;
		this.#position = position;
		this.#events = events;
	}

	/** Sets the headers of the request. */
	setHeaders(headers: Record<string, string>): void {
		this.#headers = headers;
	}

	/** Sends another request than the client's own: the one with which a watch begins. */
	beginWith(request: Uint8Array): void {
		this.#request = request;
		// The length was that of the client's. What is compressed can't be followed.
		for (const name of ["content-length", "accept-encoding", ...compressionHeaders]) {
			delete this.#headers[name];
		}
	}

	/** Sends, from now on, the request with which a watch goes on. */
	replaceRequest(request: Uint8Array): void {
		this.beginWith(request);
		this.#isMove = true;
	}

	/** Sends the call to this server only, because it has the page that is requested. */
	sendOnlyTo(server: Server | undefined): void {
		this.#onlyServer = server;
	}

	/** The number of attempts that were made. */
	get count(): number {
		return this.#count;
	}

	/** The server of the current attempt. */
	get server(): Server | undefined {
		return this.#current?.server;
	}

	/** Whether all of the request can be sent again, and the limit allows another attempt. */
	get canSendAgain(): boolean {
		const isKnown = this.#request !== undefined || this.#body.isRepeatable;
		return isKnown && this.#count < this.#environment.limits.attempts;
	}

	/** Whether the call can be sent to a server that it was not sent to before. */
	get hasAnotherServer(): boolean {
		if (this.#onlyServer !== undefined) {
			return false;
		}
		const another = this.#environment.choose(this.#tried);
		return another !== undefined && !this.#tried.has(another) && this.canSendAgain;
	}

	/** Whether the server of the current attempt was removed, and another one can be called. */
	get shouldMove(): boolean {
		return this.#current?.server.isRemoved === true && this.#hasRemaining();
	}

	/** Begins an attempt. Returns false if no server can be used. */
	send(): boolean {
		if (this.#onlyServer !== undefined && !isUsable(this.#onlyServer)) {
			this.#events.fail(pageIsGone(this.#onlyServer));
			return true;
		}
		const server = this.#onlyServer ?? this.#environment.choose(this.#tried);
		if (server === undefined) {
			return false;
		}
		this.#count += 1;
		this.#tried.add(server);
		const place = server.take(this.#environment.purpose);
		const session = place.session();
		if (!(session instanceof Promise)) {
			this.#open(server, place, session);
			return true;
		}
		session.then(
			(ready) => this.#open(server, place, ready),
			(failure: unknown) => {
				place.leave();
				// A server that is full is well: it gets calls again when others have ended.
				if (!isFull(failure)) {
					server.health.connectionFailed(reasonOf(failure));
				}
				this.#events.notBegun(reasonOf(failure));
			},
		);
		return true;
	}

	/** Ends the current attempt, if there is one, and sends no more of the request. Returns its server. */
	leave(): Server | undefined {
		const server = this.#current?.server;
		this.#current?.leave();
		this.#current = undefined;
		this.#body.stop();
		return server;
	}

	/** From now on, all servers but this one count as servers that the call was not sent to. */
	forgetTriedBut(server: Server): void {
		this.#tried.clear();
		this.#tried.add(server);
	}

	close(): void {
		this.#isOpen = false;
		this.leave();
	}

	/** Whether the call can be sent to a server that was not removed. */
	#hasRemaining(): boolean {
		return this.#onlyServer === undefined && this.#environment.choose(this.#tried) !== undefined;
	}

	#open(server: Server, place: Place, session: Session): void {
		if (!this.#isOpen) {
			place.leave();
			return;
		}
		if (server.isRemoved && this.#hasRemaining()) {
			// While the connection was being opened. This was no attempt.
			place.leave();
			this.#count -= 1;
			this.#events.send();
			return;
		}
		const attempt = new Attempt(server, place, session, this.#events);
		try {
			const headers = {
				...this.#headers,
				...credentialHeaders(this.#call, this.#environment.credential()),
				...this.#position?.headers(),
			};
			attempt.open(requestFields(headers, session));
		} catch (failure) {
			place.leave();
			if (session.isReady) {
				const message = `the request can't be forwarded: ${reasonOf(failure)}`;
				this.#events.fail(new ConnectError(message, Code.InvalidArgument));
			} else {
				this.#events.notBegun(`${server.address} has closed the connection`);
			}
			return;
		}
		this.#current = attempt;
		if (this.#isMove) {
			this.#environment.watchMoved();
		}
		if (this.#request === undefined) {
			this.#body.sendTo(attempt);
		} else {
			attempt.end(this.#request);
		}
	}
}

function isFull(failure: unknown): boolean {
	return failure instanceof ConnectError && failure.code === Code.ResourceExhausted;
}

function pageIsGone({ address }: Server): ConnectError {
	return new ConnectError(
		`page_token is no longer valid, as ${address} has the pages of this list, and is not ready: list again from the start`,
		Code.OutOfRange,
	);
}
