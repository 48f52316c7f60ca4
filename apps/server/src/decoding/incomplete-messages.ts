import type { Clock, Timer } from "@plinth/runtime";

/** A message of at most this many bytes never waits. */
const smallBytes = 64 * 1024;

/** The fraction of the limit for the first bytes of messages. */
const firstShare = 1 / 4;

/** The fraction of the limit up to which any caller may reserve bytes. */
const sharedShare = 1 / 2;

/** The fraction of the limit that one caller may reserve while more than `sharedShare` is reserved. */
const callerShare = 1 / 4;

const tickMs = 1_000;

/** How many ticks a message waits before another that has been incomplete for as long is dropped. */
const patienceTicks = 5;

/** A request whose message arrives in parts. */
export interface ArrivingRequest {
	/** Identifies the caller that its bytes count for. */
	readonly usage: object;
	/** Pauses and resumes reading the body. */
	readonly body: { pause(): void; resume(): void; readonly failed: AbortSignal };
	/** The request fails with ResourceExhausted. */
	refuse(reason: "incomplete_bytes"): void;
}

/** The messages of one caller. */
class Account {
	firstBytes = 0;
	reservedBytes = 0;
	/** Messages that are not being decoded, the oldest first. */
	readonly incomplete = new Set<IncompleteMessage>();
	/** Of these, the ones that wait. */
	readonly waiting = new Set<IncompleteMessage>();
	/** Messages that are being decoded. */
	complete = 0;
}

/**
 * Limits the bytes of messages that were received and are not decoded yet. A message counts from the first read that
 * does not complete it until it is decoded, or its exchange ends. A message that waits for its turn to be decoded counts
 * as incomplete, and can be dropped as well:
 *
 * ```
 * first bytes ──▶ more than 64 KiB? ──▶ room for the rest? ──▶ read to the end ──▶ decoded
 * count immediately      no: read on      no: wait on the       without waiting
 *                                         socket
 *
 * │ first bytes │ the rest, reserved                    │
 * │ 1/4         │ any caller        1/2 │ with less 1/4 │
 * ```
 *
 * - If first bytes exceed a quarter of the limit, the caller with the most of them loses its oldest message.
 * - The rest of a message is reserved before it is read. Any caller may reserve up to half of the limit; the last
 *   quarter is for callers that reserve at most a quarter. The caller with the fewest reserved bytes is next.
 * - A message that has waited for 5 s replaces one that has been incomplete for as long while others waited: the oldest
 *   of the caller with the most reserved bytes, if these are at least as many as the other caller would then have.
 *
 * Invariants, checked by a property test:
 * - First bytes never exceed a quarter of the limit, and reserved bytes never exceed the rest.
 * - A message with a reservation never waits, so that it can always complete and waiting messages continue.
 * - A caller loses a message only if no other caller with incomplete messages has more bytes.
 */
export class IncompleteMessages {
	readonly #clock: Clock;
	readonly #firstLimit: number;
	readonly #sharedLimit: number;
	readonly #callerLimit: number;
	readonly #reservedLimit: number;
	readonly #accounts = new Map<object, Account>();
	#firstBytes = 0;
	#reservedBytes = 0;
	#waiting = 0;
	/** Counted while messages wait. */
	#tick = 0;
	#timer: Timer | undefined;

	/**
	 * @param limitBytes - for all messages; at least four messages.
	 * @param messageBytes - the size of the largest message.
	 */
	constructor(limitBytes: number, messageBytes: number, clock: Clock) {
		const limit = Math.max(limitBytes, 4 * messageBytes);
		this.#clock = clock;
		this.#firstLimit = limit * firstShare;
		this.#sharedLimit = limit * sharedShare;
		this.#callerLimit = limit * callerShare;
		this.#reservedLimit = limit - this.#firstLimit;
	}

	/** First bytes and reserved ones of all messages. */
	get bytes(): number {
		return this.#firstBytes + this.#reservedBytes;
	}

	/** The number of waiting messages. */
	get waiting(): number {
		return this.#waiting;
	}

	/** The number of callers with messages. */
	get callers(): number {
		return this.#accounts.size;
	}

	/** A message of the request has begun to arrive. */
	begin(request: ArrivingRequest): IncompleteMessage {
		let account = this.#accounts.get(request.usage);
		if (account === undefined) {
			account = new Account();
			this.#accounts.set(request.usage, account);
		}
		const message = new IncompleteMessage(this, request, account, this.#tick);
		account.incomplete.add(message);
		return message;
	}

	/** For a message: counts its first bytes, which may drop messages, including itself. */
	addFirst(message: IncompleteMessage, bytes: number): void {
		message.firstBytes += bytes;
		message.account.firstBytes += bytes;
		this.#firstBytes += bytes;
		if (this.#firstBytes <= this.#firstLimit) {
			return;
		}
		while (this.#firstBytes > this.#firstLimit) {
			const [oldest] = this.#accountWithMost("firstBytes")?.incomplete ?? [];
			if (oldest === undefined) {
				break;
			}
			this.#refuse(oldest);
		}
		this.#serve();
	}

	/** For a message: reserves the rest of it, and pauses its request until there is room. */
	reserve(message: IncompleteMessage, bytes: number): void {
		message.wantedBytes = bytes;
		message.waitsSince = this.#tick;
		message.account.waiting.add(message);
		this.#waiting += 1;
		message.request.body.pause();
		this.#serve();
		if (this.#waiting > 0) {
			this.#timer ??= this.#clock.setTimer(tickMs, this.#onTick);
		}
	}

	/** For a message: it is being decoded. */
	completed(message: IncompleteMessage): void {
		const { account } = message;
		if (account.incomplete.delete(message)) {
			account.complete += 1;
		}
	}

	/** For a message: it has ended. */
	ended(message: IncompleteMessage): void {
		this.#drop(message);
		this.#serve();
	}

	/** Reserves for waiting messages as long as there is room: that of the caller with the least is next. */
	#serve(): void {
		while (this.#waiting > 0) {
			const next = this.#next(0);
			if (next === undefined || !this.#hasRoomFor(next)) {
				return;
			}
			this.#grant(next);
		}
		this.#timer?.cancel();
		this.#timer = undefined;
	}

	#grant(message: IncompleteMessage): void {
		const { account, wantedBytes } = message;
		account.waiting.delete(message);
		this.#waiting -= 1;
		message.wantedBytes = 0;
		message.reservedBytes = wantedBytes;
		account.reservedBytes += wantedBytes;
		this.#reservedBytes += wantedBytes;
		message.request.body.resume();
	}

	#hasRoomFor({ account, wantedBytes }: IncompleteMessage): boolean {
		const reserved = this.#reservedBytes + wantedBytes;
		return (
			reserved <= this.#sharedLimit ||
			(reserved <= this.#reservedLimit && account.reservedBytes + wantedBytes <= this.#callerLimit)
		);
	}

	/** Of the messages that have waited for so many ticks, the first of the caller that reserves the least. */
	#next(ticks: number): IncompleteMessage | undefined {
		let next: IncompleteMessage | undefined;
		for (const { waiting } of this.#accounts.values()) {
			const [first] = waiting;
			if (
				first !== undefined &&
				this.#tick - first.waitsSince >= ticks &&
				(next === undefined || first.account.reservedBytes < next.account.reservedBytes)
			) {
				next = first;
			}
		}
		return next;
	}

	readonly #onTick = (): void => {
		this.#timer = undefined;
		this.#tick += 1;
		for (;;) {
			const next = this.#next(patienceTicks);
			if (next === undefined || !this.#makeRoomFor(next)) {
				break;
			}
			this.#grant(next);
		}
		this.#serve();
		if (this.#waiting > 0) {
			this.#timer ??= this.#clock.setTimer(tickMs, this.#onTick);
		}
	};

	/** Drops messages that have been incomplete for long. Returns whether there is room now. */
	#makeRoomFor(message: IncompleteMessage): boolean {
		const { account, wantedBytes } = message;
		while (!this.#hasRoomFor(message)) {
			const most = this.#accountWithMost("reservedBytes");
			if (most === undefined || most.reservedBytes < account.reservedBytes + wantedBytes) {
				return false;
			}
			const oldest = firstReserved(most.incomplete);
			if (oldest === undefined || this.#tick - oldest.since < patienceTicks) {
				return false;
			}
			this.#refuse(oldest);
		}
		return true;
	}

	#accountWithMost(bytes: "firstBytes" | "reservedBytes"): Account | undefined {
		let most: Account | undefined;
		for (const account of this.#accounts.values()) {
			if (account.incomplete.size > 0 && (most === undefined || account[bytes] > most[bytes])) {
				most = account;
			}
		}
		return most;
	}

	#refuse(message: IncompleteMessage): void {
		this.#drop(message);
		message.request.refuse("incomplete_bytes");
	}

	#drop(message: IncompleteMessage): void {
		const { account, firstBytes, reservedBytes, request } = message;
		if (message.isEnded) {
			return;
		}
		message.isEnded = true;
		if (!account.incomplete.delete(message)) {
			account.complete -= 1;
		}
		if (account.waiting.delete(message)) {
			this.#waiting -= 1;
		}
		account.firstBytes -= firstBytes;
		account.reservedBytes -= reservedBytes;
		this.#firstBytes -= firstBytes;
		this.#reservedBytes -= reservedBytes;
		if (account.incomplete.size === 0 && account.complete === 0) {
			this.#accounts.delete(request.usage);
		}
	}
}

function firstReserved(messages: Iterable<IncompleteMessage>): IncompleteMessage | undefined {
	for (const message of messages) {
		if (message.reservedBytes > 0) {
			return message;
		}
	}
	return undefined;
}

/** A message that counts for the limit, until it ends. */
export class IncompleteMessage {
	readonly #messages: IncompleteMessages;
	readonly request: ArrivingRequest;
	readonly account: Account;
	/** The tick in which it began. */
	readonly since: number;
	waitsSince = 0;
	/** Bytes that were read before the rest was reserved. */
	firstBytes = 0;
	/** The bytes that it waits to reserve. */
	wantedBytes = 0;
	reservedBytes = 0;
	isComplete = false;
	isEnded = false;

	/** Use `IncompleteMessages.begin`. */
	constructor(
		messages: IncompleteMessages,
		request: ArrivingRequest,
		account: Account,
		since: number,
	) {
		this.#messages = messages;
		this.request = request;
		this.account = account;
		this.since = since;
	}

	/**
	 * More of it was received. May pause the request, or end it with an error.
	 *
	 * @param received - all bytes so far.
	 * @param size - the size of the message; `undefined` if it is not known.
	 * @param maxSize - its maximum size.
	 */
	update(received: number, size: number | undefined, maxSize: number): void {
		if (this.isEnded || this.wantedBytes > 0 || this.reservedBytes > 0) {
			return;
		}
		const isSmall = size !== undefined && size <= smallBytes;
		this.#messages.addFirst(this, (isSmall ? size : received) - this.firstBytes);
		const left = Math.min(size ?? maxSize, maxSize) - received;
		const isLarge = size === undefined ? received > smallBytes : !isSmall;
		if (isLarge && left > 0 && !this.isEnded) {
			this.#messages.reserve(this, left);
		}
	}

	/** It is being decoded, and counts until it is decoded. */
	complete(): void {
		this.isComplete = true;
		if (!this.isEnded) {
			this.#messages.completed(this);
		}
	}

	/** It is decoded, or dropped. */
	end(): void {
		if (!this.isEnded) {
			this.#messages.ended(this);
		}
	}
}
