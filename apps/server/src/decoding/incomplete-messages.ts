import type { Clock, Timer } from "@plinth/runtime";

/** A message of at most this many bytes never waits. */
const smallBytes = 64 * 1024;

/** Of the limit, what the first bytes of messages may take. */
const firstShare = 1 / 4;

/** Of the limit, what any caller may bring the reserved bytes to. */
const sharedShare = 1 / 2;

/** Of the limit, what a caller may reserve where the reserved bytes are beyond `sharedShare`. */
const callerShare = 1 / 4;

const tickMs = 1_000;

/** For how many ticks a message waits before another one that has taken as long gives way. */
const patienceTicks = 5;

/** A request whose message arrives in parts. */
export interface ArrivingRequest {
	/** The caller that its bytes count for. */
	readonly usage: object;
	/** Stops reading the body, and goes on. */
	readonly body: { pause(): void; resume(): void; readonly failed: AbortSignal };
	/** The request fails with ResourceExhausted. */
	refuse(reason: "incomplete_bytes"): void;
}

/** What one caller holds. */
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
 * Limits the bytes of messages that were received and not decoded yet. A message counts from the first
 * read that does not complete it until it is decoded, or its exchange ends. One that waits for its turn to be
 * decoded is as incomplete as one that has not arrived, and may be dropped likewise:
 *
 * ```
 * first bytes ──▶ more than 64 KiB? ──▶ room for the rest? ──▶ read to the end ──▶ decoded
 * count at once          no: read on      no: stay on the       without waiting
 *                                         socket until then
 *
 * │ first bytes │ the rest, reserved                    │
 * │ 1/4         │ any caller        1/2 │ with less 1/4 │
 * ```
 *
 * - Past a quarter of the limit in first bytes, the caller with the most of them loses its oldest message.
 * - The rest of a message is reserved before it is read. Any caller may reserve up to half of the limit; the
 *   last quarter is for callers that reserve no more than that much. The caller that holds the least is next.
 * - A message that has waited for 5 s takes the place of one that has been incomplete for as long while others
 *   waited: the oldest of the caller that holds the most, if that is no less than its own would hold then.
 *
 * Invariants, checked by a property test:
 * - First bytes take no more than a quarter of the limit, and reserved ones no more than the rest.
 * - A message with a reservation never waits, so that it can always end; and those that wait go on then.
 * - A caller loses a message only if no other one with incomplete messages holds more.
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
	 * @param limitBytes - of all messages; what is below four messages is taken for four.
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

	/** How many messages wait. */
	get waiting(): number {
		return this.#waiting;
	}

	/** How many callers hold anything. */
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

	/** For a message: counts its first bytes, which may end messages, itself among them. */
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

	/** For a message: reserves what is left of it, and pauses its request until there is room. */
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

	/** For a message: it holds nothing any more. */
	ended(message: IncompleteMessage): void {
		this.#drop(message);
		this.#serve();
	}

	/** Reserves for those that wait, as far as there is room: the one whose caller holds the least is next. */
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

	/** Of those that have waited for so many ticks, the first of the caller that reserves the least. */
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

	/** Ends messages that have been incomplete for long; returns whether that was enough. */
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
	/** What it waits for. */
	wantedBytes = 0;
	reservedBytes = 0;
	isComplete = false;
	isEnded = false;

	/** To be created by `IncompleteMessages.begin`. */
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
	 * @param size - the size of the message; `undefined` where it is not known.
	 * @param maxSize - the size that it can't exceed.
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

	/** Its turn to be decoded has come, and it still counts until it is. */
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
