import {
	create,
	type DescMessage,
	type MessageInitShape,
	type MessageShape,
} from "@bufbuild/protobuf";
import {
	type CallOptions,
	type Client,
	Code,
	ConnectError,
	createHandlerContext,
	type HandlerContext,
} from "@connectrpc/connect";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { SimulatedServer } from "./participants.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

const { method } = SchemaMixinService;

const anyContext: HandlerContext = createHandlerContext({
	service: SchemaMixinService,
	method: method.checkReferences,
	protocolName: "in-process",
	requestMethod: "POST",
	url: "http://localhost",
});

/**
 * A client by which a server calls another deployment, without the cost of a transport. Messages are
 * delayed, reordered, lost in either direction, and delivered twice.
 */
export function clientOf(
	sim: SimulationContext,
	from: SimulatedServer,
	toUid: string,
): Client<typeof SchemaMixinService> {
	const call = unaryFrom(sim, from, toUid);
	return {
		establishReferences: call(method.establishReferences, (to, request, context) =>
			to.service.establishReferences(request, context),
		),
		authorizeReferences: call(method.authorizeReferences, (to, request, context) =>
			to.service.authorizeReferences(request, context),
		),
		confirmBlockades: call(method.confirmBlockades, (to, request, context) =>
			to.service.confirmBlockades(request, context),
		),
		checkReferences: call(method.checkReferences, (to, request, context) =>
			to.service.checkReferences(request, context),
		),
		reportReleases: call(method.reportReleases, (to, request, context) =>
			to.service.reportReleases(request, context),
		),
		checkMetaOwners: call(method.checkMetaOwners, (to, request, context) =>
			to.service.checkMetaOwners(request, context),
		),
		reportEstablished: call(method.reportEstablished, (to, request, context) =>
			to.service.reportEstablished(request, context),
		),
		watchImportedServiceDeletions: (request, options) =>
			watch(sim, from, toUid, request, options?.signal),
	};
}

interface UnaryMethod<I extends DescMessage, O extends DescMessage> {
	readonly name: string;
	readonly input: I;
	readonly output: O;
}

function unaryFrom(sim: SimulationContext, from: SimulatedServer, toUid: string) {
	return <I extends DescMessage, O extends DescMessage>(
		{ name, input, output }: UnaryMethod<I, O>,
		handle: (
			to: SimulatedServer,
			request: MessageShape<I>,
			context: HandlerContext,
		) => Promise<MessageInitShape<O>> | MessageInitShape<O>,
	) => {
		async function deliver(request: MessageShape<I>): Promise<MessageShape<O>> {
			await sim.delay();
			const to = serverOf(sim, toUid);
			sim.trace.add(to.name, () => `<- ${from.name}: ${name}`);
			// Each request has its own signal: what waits for it is garbage once its server has crashed.
			const context = { ...anyContext, signal: new AbortController().signal };
			const handling = withConnectErrors(() => handle(to, request, context));
			const response = await to.lifetime.observe(handling, unreachable);
			await sim.delay();
			return create(output, response);
		}
		return (
			init: MessageInitShape<I>,
			{ timeoutMs }: CallOptions = {},
		): Promise<MessageShape<O>> => {
			const request = create(input, init);
			const { lost, repeated } = sim.faults;
			if (sim.happens(repeated)) {
				void sim
					.wait(sim.random.next() * sim.pick([0, 1_000, 60_000]))
					.then(() => deliver(request))
					.catch(() => {});
			}
			return from.lifetime.within(
				timeLimited(from, timeoutMs, async () => {
					if (sim.happens(lost)) {
						await sim.delay();
						sim.trace.add(from.name, () => `request lost: ${name}`);
						throw unreachable();
					}
					const response = await deliver(request);
					if (sim.happens(lost)) {
						sim.trace.add(from.name, () => `response lost: ${name}`);
						throw unreachable();
					}
					return response;
				}),
			);
		};
	};
}

async function withConnectErrors<T>(run: () => Promise<T> | T): Promise<T> {
	try {
		return await run();
	} catch (failure) {
		throw failure instanceof ConnectError
			? failure
			: new ConnectError("internal error", Code.Internal, undefined, undefined, failure);
	}
}

/** Rejects with DeadlineExceeded after the timeout, by the clock of the server. No timeout: never. */
export function timeLimited<T>(
	{ runtime }: SimulatedServer,
	timeoutMs: number | undefined,
	run: () => Promise<T>,
): Promise<T> {
	if (timeoutMs === undefined) {
		return run();
	}
	return new Promise((resolve, reject) => {
		const timer = runtime.clock.setTimer(timeoutMs, () =>
			reject(new ConnectError("the operation timed out", Code.DeadlineExceeded)),
		);
		run()
			.then(resolve, reject)
			.finally(() => timer.cancel());
	});
}

async function* watch(
	sim: SimulationContext,
	_from: SimulatedServer,
	toUid: string,
	init: MessageInitShape<typeof method.watchImportedServiceDeletions.input>,
	signal: AbortSignal = new AbortController().signal,
): AsyncGenerator<MessageShape<typeof method.watchImportedServiceDeletions.output>> {
	await sim.delay();
	const to = serverOf(sim, toUid);
	const ended = new AbortController();
	const end = () => ended.abort();
	signal.addEventListener("abort", end, { once: true });
	const forget = to.lifetime.onEnd(end);
	try {
		const request = create(method.watchImportedServiceDeletions.input, init);
		const events = to.service.watchImportedServiceDeletions(request, {
			...anyContext,
			signal: ended.signal,
		});
		for await (const event of events) {
			await sim.delay();
			if (ended.signal.aborted || sim.happens(sim.faults.broken)) {
				throw unreachable();
			}
			yield create(method.watchImportedServiceDeletions.output, event);
		}
		throw unreachable();
	} finally {
		ended.abort();
		forget();
		signal.removeEventListener("abort", end);
	}
}

function serverOf(sim: SimulationContext, uid: string): SimulatedServer {
	const servers = sim.deployments.find(({ info }) => info.uid === uid)?.servers ?? [];
	const server = servers[sim.below(servers.length)];
	if (server === undefined) {
		throw unreachable();
	}
	return server;
}

/** The failure of a call that got no response. */
export function unreachable(): ConnectError {
	return new ConnectError("no server responds", Code.Unavailable);
}
