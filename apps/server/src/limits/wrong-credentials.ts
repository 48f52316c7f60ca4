import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Clock } from "@plinth/runtime";
import { exchangeOf } from "../listener/exchange.ts";
import type { RefusedCall } from "./call-gate.ts";
import { networkOf } from "./network-of.ts";
import { type Rate, RateLimiter } from "./rate-limiter.ts";
import { noteRefusedWhileRunning } from "./refused-while-running.ts";

/** The rate of wrong credentials from one address: ten per second on average, a hundred after an idle period. */
const wrongCredentialRate: Rate = { perSecond: 10, burst: 100 };

/** Options of `WrongCredentials`. */
export interface WrongCredentialsOptions {
	readonly clock: Clock;
	/** Called with each call whose credential is wrong. */
	readonly onRefused: (refused: RefusedCall) => void;
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
		noteRefusedWhileRunning(call.values);
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
