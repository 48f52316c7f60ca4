import {
	Code,
	ConnectError,
	type ContextValues,
	createContextKey,
	type HandlerContext,
} from "@connectrpc/connect";
import type { Clock } from "@plinth/runtime";
import { exchangeOf } from "../listener/exchange.ts";
import type { RefusedCall } from "./call-gate.ts";
import { networkOf } from "./network-of.ts";
import { type Rate, RateLimiter } from "./rate-limiter.ts";

/** The rate of wrong credentials from one address: ten per second on average, a hundred after an idle period. */
const wrongCredentialRate: Rate = { perSecond: 10, burst: 100 };

/** Options of `WrongCredentials`. */
export interface WrongCredentialsOptions {
	readonly clock: Clock;
	/** Called with each call whose credential is wrong. */
	readonly onRefused: (refused: RefusedCall) => void;
}

const refusedKey = createContextKey(false, {
	description: "whether the call was refused because of its credential",
});

/** Whether a call was passed to `onRefused` of `WrongCredentials`. */
export function hadWrongCredential(values: ContextValues): boolean {
	return values.get(refusedKey);
}

/**
 * The wrong credentials of peers, whose calls have no subject that a gate could count. Beyond the rate of an address, a call
 * with a wrong credential fails with ResourceExhausted. Calls with a valid one are never counted, so that a peer can call from
 * an address, such as that of a proxy, from which others guess credentials.
 */
export class WrongCredentials {
	readonly #onRefused: WrongCredentialsOptions["onRefused"];
	readonly #rates: RateLimiter;

	constructor({ clock, onRefused }: WrongCredentialsOptions) {
		this.#onRefused = onRefused;
		this.#rates = new RateLimiter(wrongCredentialRate, clock);
	}

	/** The error of a call whose credential was found to be wrong, which is counted. */
	refuse(call: HandlerContext, failure: ConnectError): ConnectError {
		call.values.set(refusedKey, true);
		const isGranted = this.#rates.take(networkOf(exchangeOf(call.values).clientAddress));
		const error = isGranted
			? failure
			: new ConnectError(
					"too many calls with wrong credentials from this address: try again later",
					Code.ResourceExhausted,
				);
		const why = isGranted ? "unauthenticated" : "rate";
		this.#onRefused({ call, why, subject: undefined, error });
		return error;
	}
}
