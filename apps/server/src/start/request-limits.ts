import { openSealedToken } from "../cluster/sealed-token.ts";
import { BytePacer } from "../decoding/byte-pacer.ts";
import { FieldLimits } from "../decoding/field-limits.ts";
import { IncompleteMessages } from "../decoding/incomplete-messages.ts";
import { RequestMeter, type RequestMeterOptions } from "../decoding/request-meter.ts";
import { CallGate } from "../limits/call-gate.ts";
import { EventLoopTurns } from "../limits/event-loop-turns.ts";
import { WrongCredentials } from "../limits/wrong-credentials.ts";
import { Exchanges } from "../listener/exchanges.ts";
import { tokenlessServices } from "../services/register-services.ts";
import type { StartContext } from "./start-context.ts";
import type { Telemetry } from "./start-telemetry.ts";
import type { ValidatedOptions } from "./validate-options.ts";

/** The limits that each request passes. */
export interface RequestLimits {
	readonly gate: CallGate;
	readonly wrongCredentials: WrongCredentials;
	readonly turns: EventLoopTurns;
	readonly exchanges: Exchanges;
	readonly meter: RequestMeter;
	/** Meters the requests of other deployments. */
	readonly internalMeter: RequestMeter;
}

/**
 * Creates the limits on calls and on the bytes of requests and responses, and measures what is in use.
 *
 * @param secret - known to the servers of the cluster, which seal tokens with it.
 */
export function createRequestLimits(
	context: StartContext,
	{ authorizer, registry }: Pick<ValidatedOptions, "authorizer" | "registry">,
	{ calls, onRefused }: Telemetry,
	secret: string,
): RequestLimits {
	const { logger, modules, runtime, limits, callLimits } = context;
	const { clock } = runtime;
	const gate = new CallGate({
		authorizer,
		limits: callLimits,
		streamsPerConnection: limits.streamsPerConnection,
		clock,
		exempt: new Set(tokenlessServices.keys()),
		onRefused,
		beforeToken: (call) => openSealedToken(call, secret),
	});
	calls.observe(gate);
	const fieldLimits = {
		registry: registry.messages(),
		messageFields: limits.messageFields,
		methods: new Map(modules.flatMap(({ messageFields }) => [...messageFields])),
	};
	const turns = new EventLoopTurns(clock);
	const incomplete = new IncompleteMessages(limits.incompleteBytes, limits.messageBytes, clock);
	calls.observeIncomplete(incomplete);
	const metering = {
		messageBytes: ({ parent }) => tokenlessServices.get(parent.typeName) ?? limits.messageBytes,
		turns,
		incomplete,
		onRefused: ({ method, subject, error }) =>
			onRefused({ call: { method }, why: "fields", subject, error }),
	} satisfies Omit<RequestMeterOptions, "fields">;
	const { bytesPerSecond, byteBurst } = callLimits;
	const pacer = new BytePacer({ perSecond: bytesPerSecond, burst: byteBurst }, clock);
	const meter = new RequestMeter({ ...metering, fields: new FieldLimits(fieldLimits), pacer });
	const internalMeter = new RequestMeter({
		...metering,
		// A request about a message that was accepted here can have more fields than the message.
		fields: new FieldLimits({ ...fieldLimits, messageFields: 4 * limits.messageFields }),
		unaryOnly: true,
	});
	const exchanges = new Exchanges({ clock, logger, limits, onCut: calls.cut });
	calls.observeExchanges(exchanges);
	const wrongCredentials = new WrongCredentials({ clock, onRefused });
	return { gate, wrongCredentials, turns, exchanges, meter, internalMeter };
}
