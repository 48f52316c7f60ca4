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
import { sleep } from "@plinth/runtime";
import type { Server } from "./server.ts";
import type { World } from "./world.ts";

const { method } = SchemaMixinService;

const anyContext: HandlerContext = createHandlerContext({
	service: SchemaMixinService,
	method: method.checkReferences,
	protocolName: "in-process",
	requestMethod: "POST",
	url: "http://localhost",
});

/**
 * What a server calls another deployment through, without the cost of a transport: messages are late,
 * overtake each other, get lost on either way, and arrive twice.
 */
export function clientOf(
	world: World,
	from: Server,
	toUid: string,
): Client<typeof SchemaMixinService> {
	const call = unaryFrom(world, from, toUid);
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
			watch(world, from, toUid, request, options?.signal),
	};
}

interface UnaryMethod<I extends DescMessage, O extends DescMessage> {
	readonly name: string;
	readonly input: I;
	readonly output: O;
}

function unaryFrom(world: World, from: Server, toUid: string) {
	return <I extends DescMessage, O extends DescMessage>(
		{ name, input, output }: UnaryMethod<I, O>,
		handle: (
			to: Server,
			request: MessageShape<I>,
			context: HandlerContext,
		) => Promise<MessageInitShape<O>> | MessageInitShape<O>,
	) => {
		async function arrive(request: MessageShape<I>): Promise<MessageShape<O>> {
			await world.someTime();
			const to = serverOf(world, toUid);
			world.story.tell(to.name, () => `<- ${from.name}: ${name}`);
			// A signal of its own: what waits on it when its server crashes goes with it.
			const context = { ...anyContext, signal: new AbortController().signal };
			const answering = answer(() => handle(to, request, context));
			const answered = await to.life.seenFrom(answering, unreachable);
			await world.someTime();
			return create(output, answered);
		}
		return (
			init: MessageInitShape<I>,
			{ timeoutMs }: CallOptions = {},
		): Promise<MessageShape<O>> => {
			const request = create(input, init);
			const { lost, repeated } = world.weather;
			if (world.happens(repeated)) {
				void world
					.pass(world.random.next() * world.pick([0, 1_000, 60_000]))
					.then(() => arrive(request))
					.catch(() => {});
			}
			return from.life.within(
				timeLimited(from, timeoutMs, async () => {
					if (world.happens(lost)) {
						await world.someTime();
						world.story.tell(from.name, () => `lost on its way: ${name}`);
						throw unreachable();
					}
					const answered = await arrive(request);
					if (world.happens(lost)) {
						world.story.tell(from.name, () => `lost on its way: the answer to ${name}`);
						throw unreachable();
					}
					return answered;
				}),
			);
		};
	};
}

async function answer<T>(run: () => Promise<T> | T): Promise<T> {
	try {
		return await run();
	} catch (failure) {
		throw failure instanceof ConnectError
			? failure
			: new ConnectError("internal error", Code.Internal, undefined, undefined, failure);
	}
}

/** What takes no longer than that by the clock of the server; without a limit, as long as it takes. */
export function timeLimited<T>(
	{ runtime }: Server,
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
	world: World,
	_from: Server,
	toUid: string,
	init: MessageInitShape<typeof method.watchImportedServiceDeletions.input>,
	signal: AbortSignal = new AbortController().signal,
): AsyncGenerator<MessageShape<typeof method.watchImportedServiceDeletions.output>> {
	await world.someTime();
	const to = serverOf(world, toUid);
	const ended = new AbortController();
	const end = () => ended.abort();
	signal.addEventListener("abort", end, { once: true });
	const forget = to.life.onEnd(end);
	try {
		const request = create(method.watchImportedServiceDeletions.input, init);
		const events = to.service.watchImportedServiceDeletions(request, {
			...anyContext,
			signal: ended.signal,
		});
		for await (const event of events) {
			await world.someTime();
			if (ended.signal.aborted || world.happens(world.weather.broken)) {
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

function serverOf(world: World, uid: string): Server {
	const servers = world.deployments.find(({ info }) => info.uid === uid)?.servers ?? [];
	const server = servers[world.below(servers.length)];
	if (server === undefined) {
		throw unreachable();
	}
	return server;
}

/** The failure of a call that nobody has answered. */
export function unreachable(): ConnectError {
	return new ConnectError("nobody answers", Code.Unavailable);
}

/** Time passes for a server. */
export function pause({ runtime }: Server, ms: number): Promise<void> {
	return sleep(runtime.clock, ms);
}
