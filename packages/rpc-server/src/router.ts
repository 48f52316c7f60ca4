import type { DescMethod, DescService } from "@bufbuild/protobuf";
import {
	type ConnectError,
	type ConnectRouter,
	type ConnectRouterOptions,
	createConnectRouter,
	createMethodImplSpec,
	createServiceImplSpec,
	type HandlerContext,
	type Interceptor,
	type MethodImpl,
	type MethodImplSpec,
	type ServiceImpl,
} from "@connectrpc/connect";
import { validateUniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { type Clock, Deadlines } from "@plinth/runtime";
import { Call } from "./call/call.ts";
import type { CallEnvironment } from "./call/environment.ts";
import { RunningCalls } from "./call/running-calls.ts";
import type { Carrier, RequestHead } from "./carrier.ts";
import { correctingGate } from "./fallback/correcting-gate.ts";
import { endCalls } from "./fallback/end-calls.ts";
import { endStreams } from "./fallback/end-streams.ts";
import { observing } from "./fallback/observing.ts";
import { reportFaults } from "./fallback/report-faults.ts";
import type { CallObserver } from "./observers.ts";
import type { PlannedCall } from "./plan.ts";
import { planCall } from "./plan-call.ts";
import { type Route, type RouteOptions, routeOf, type ServedProtocols } from "./route.ts";

/** Options of `createRpcRouter`, in addition to those of Connect's router. */
export interface RpcRouterOptions extends ConnectRouterOptions {
	/** The clock of deadlines. */
	readonly clock: Clock;
	/** Observers of all calls, outside all interceptors; the first is the outermost. */
	readonly observers?: readonly CallObserver[];
	/** When it aborts, streams end with its reason. `shutdownSignal` ends all calls. */
	readonly streamsEnd?: AbortSignal;
	/**
	 * Called with a failure of an implementation that is not a ConnectError, and is therefore a bug. The client receives
	 * Internal without details.
	 */
	readonly onFault?: (call: Pick<HandlerContext, "method">, failure: unknown) => void;
	/** Corrects an error, in place, before it is sent. */
	readonly correctError?: (error: ConnectError) => void;
}

/** A router that serves most calls itself, and leaves the rest to Connect. */
export interface RpcRouter extends ConnectRouter {
	/**
	 * The plan for a call, from its head alone; `undefined` if no method has its path, or if the call is left to
	 * Connect's handlers.
	 */
	plan(path: string, head: RequestHead): PlannedCall | undefined;
	/** Serves a planned call. */
	serve(plan: PlannedCall, carrier: Carrier): void;
}

type RegistrationOptions = Parameters<ConnectRouter["rpc"]>[2];

/**
 * Creates a router that accepts the same registrations as Connect's. It serves unary and server-streaming calls itself,
 * and leaves all others to Connect's handlers, in `handlers`: client streams, compressed messages, and requests whose
 * head is unusual or malformed. Both serve a call alike.
 */
export function createRpcRouter(options: RpcRouterOptions): RpcRouter {
	const { clock, observers = [], streamsEnd, shutdownSignal, onFault, correctError } = options;
	const environment: CallEnvironment = {
		clock,
		deadlines: new Deadlines(clock),
		observers,
		running: new RunningCalls({ shutdownSignal, streamsEnd }),
		onFault,
		correctError,
	};
	return new Router(options, environment);
}

class Router implements RpcRouter {
	readonly #options: RpcRouterOptions;
	readonly #environment: CallEnvironment;
	readonly #connect: ConnectRouter;
	readonly #routes = new Map<string, Route>();

	constructor(options: RpcRouterOptions, environment: CallEnvironment) {
		this.#options = options;
		this.#environment = environment;
		this.#connect = createConnectRouter({ ...options, ...this.#forConnect(options) });
	}

	get handlers(): ConnectRouter["handlers"] {
		return this.#connect.handlers;
	}

	service<T extends DescService>(
		service: T,
		implementation: Partial<ServiceImpl<T>>,
		options?: RegistrationOptions,
	): this {
		this.#connect.service(service, implementation, this.#registration(options));
		for (const spec of Object.values(createServiceImplSpec(service, implementation).methods)) {
			this.#add(spec, options);
		}
		return this;
	}

	rpc<M extends DescMethod>(
		method: M,
		implementation: MethodImpl<M>,
		options?: RegistrationOptions,
	): this {
		this.#connect.rpc(method, implementation, this.#registration(options));
		this.#add(createMethodImplSpec(method, implementation), options);
		return this;
	}

	plan(path: string, head: RequestHead): PlannedCall | undefined {
		const route = this.#routes.get(path);
		return route === undefined ? undefined : planCall(route, head);
	}

	serve(plan: PlannedCall, carrier: Carrier): void {
		new Call(plan, carrier, this.#environment).begin();
	}

	/** As in Connect, options of a registration replace those of the router. */
	#add(spec: MethodImplSpec, own: RegistrationOptions): void {
		const { method } = spec;
		const requestGate = own?.requestGate ?? this.#options.requestGate;
		// A registration without a gate of its own has that of the router.
		const options = routeOptions({ ...this.#options, ...own, ...(requestGate && { requestGate }) });
		const served: ServedProtocols = own === undefined ? this.#options : {};
		const path = `/${method.parent.typeName}/${method.name}`;
		const route = routeOf(spec, options, served);
		if (route === undefined) {
			this.#routes.delete(path);
		} else {
			this.#routes.set(path, route);
		}
	}

	#registration(own: RegistrationOptions): RegistrationOptions {
		return own === undefined ? undefined : { ...own, ...this.#forConnect(own) };
	}

	/** Around Connect's handlers, interceptors do what this package's own calls do without them. */
	#forConnect({
		interceptors,
		requestGate,
	}: Pick<ConnectRouterOptions, "interceptors" | "requestGate">): Pick<
		ConnectRouterOptions,
		"interceptors" | "requestGate"
	> {
		const { correctError, streamsEnd, shutdownSignal, onFault } = this.#options;
		const gate = requestGate ?? this.#options.requestGate;
		const around: Interceptor[] = [
			observing(this.#environment.observers),
			...(interceptors ?? this.#options.interceptors ?? []),
			...(streamsEnd === undefined ? [] : [endStreams(streamsEnd)]),
			...(shutdownSignal === undefined ? [] : [endCalls(shutdownSignal)]),
			reportFaults(onFault),
		];
		return {
			interceptors: around,
			...(correctError !== undefined && { requestGate: correctingGate(correctError, gate) }),
		};
	}
}

function routeOptions(options: ConnectRouterOptions): RouteOptions {
	const valid = validateUniversalHandlerOptions(options);
	const { binaryOptions, jsonOptions, requestGate } = options;
	return {
		readMaxBytes: valid.readMaxBytes,
		writeMaxBytes: valid.writeMaxBytes,
		maxTimeoutMs: valid.maxTimeoutMs,
		interceptors: valid.interceptors,
		requireConnectProtocolHeader: valid.requireConnectProtocolHeader,
		isUncompressed: valid.acceptCompression.length === 0,
		...(binaryOptions && { binaryOptions }),
		...(jsonOptions && { jsonOptions }),
		...(requestGate && { requestGate }),
	};
}
