import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	type CheckReferencesRequest_Question,
	CheckReferencesRequest_QuestionSchema,
	type CheckReferencesResponse_Answer,
	type Route,
	RouteSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { type Deployed, ResourceKeySchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Caller } from "@plinth/resource";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { deployedOf, holders } from "../shadow/shadow.ts";
import type { StoredShadow } from "../shadow/shadow-records.ts";
import { isSuccessionPending, responsibleUid } from "../succession/successors.ts";
import { Batcher } from "./batcher.ts";
import { forwarded } from "./forwarded-callers.ts";
import { currentDecision, type HolderDecision } from "./holder-decision.ts";
import { protocolVersions } from "./protocol-versions.ts";

/** The response of one deployment to a holder query. */
export type HolderResponse =
	| {
			readonly kind: "decided";
			readonly deployment: Deployed;
			readonly decision: HolderDecision;
	  }
	/** It could not be queried: whether it holds the resource is not known. */
	| { readonly kind: "unknown"; readonly deployment: Deployed; readonly reason: string };

/** Whether the deployment has released the resource: nothing there references it or is owned by it. */
export function isReleased(response: HolderResponse): boolean {
	return (
		response.kind === "decided" && response.decision.rules.length === 0 && !response.decision.owned
	);
}

/** Whether the response prevents a deletion from starting. */
export function blocksDeletion(response: HolderResponse): boolean {
	return response.kind === "unknown" || response.decision.rules.includes(OnDelete.BLOCK);
}

/** The route of a call from this deployment to another one. */
export function routeTo(context: Pick<ConstraintContext, "environment">, uid: string): Route {
	return create(RouteSchema, {
		from: deployedOf(context.environment.self),
		toUid: uid,
		protocol: protocolVersions.newest,
		oldestProtocol: protocolVersions.oldest,
	});
}

/** Options of a holder query. */
export interface HolderQueryOptions {
	/** Whether the resource is irrevocably being deleted, so that the holders must release it. */
	readonly deleting?: boolean;
	/** The caller to whom blockers are named. Default: the deployment itself, which may read all. */
	readonly caller?: Caller | undefined;
	/** Whether nothing may change anywhere. Then the responses are not final. */
	readonly dryRun?: boolean;
}

/** Receives the number of queries that another deployment was sent in one call, and whether it responded. */
export type HolderQueryListener = (uid: string, queries: number, hasResponse: boolean) => void;

/** Queries deployments whether they hold resources of this one, before and during deletions. */
export class HolderQuery {
	readonly #context: ConstraintContext;
	readonly #onQueried: HolderQueryListener;
	readonly #batchers = new Map<
		string,
		Batcher<CheckReferencesRequest_Question, CheckReferencesResponse_Answer>
	>();

	/** @param onQueried - called after each call to another deployment. */
	constructor(context: ConstraintContext, onQueried: HolderQueryListener = () => {}) {
		this.#context = context;
		this.#onQueried = onQueried;
	}

	/**
	 * Queries all holders of a resource. The stored shadow decides who they are; the responses also cover
	 * writes that began before that version of the shadow. Stops after this deployment if it blocks and
	 * `deleting` is not set. Rejects only if the storage of this deployment fails.
	 */
	async all(
		stored: StoredShadow,
		options: HolderQueryOptions = {},
	): Promise<readonly HolderResponse[]> {
		const { environment } = this.#context;
		const { self } = environment;
		const deployments = holders(stored.shadow);
		const isOwn = ({ uid }: Deployed) => responsibleUid(environment, uid) === self.uid;
		const responses: HolderResponse[] = [];
		for (const own of deployments.filter(isOwn)) {
			const response = await this.#own(stored, own, options);
			responses.push(response);
			if (blocksDeletion(response) && !options.deleting) {
				return responses;
			}
		}
		const remote = deployments
			.filter((each) => !isOwn(each))
			.map((deployment) => this.one(stored, deployment, options));
		return [...responses, ...(await Promise.all(remote))];
	}

	/** Queries one other deployment. Never rejects. */
	async one(
		stored: StoredShadow,
		deployment: Deployed,
		options: HolderQueryOptions = {},
	): Promise<HolderResponse> {
		const question = create(CheckReferencesRequest_QuestionSchema, {
			target: stored.shadow.resource ?? create(ResourceKeySchema),
			targetUid: stored.shadow.uid,
			deleting: options.deleting ?? false,
			// A deletion that has already started names no blockers to anyone.
			...(!options.deleting && { caller: forwarded(options.caller) }),
		});
		if (isSuccessionPending(this.#context.environment, deployment.uid)) {
			const reason = "its successor has not established yet what it references";
			return { kind: "unknown", deployment, reason };
		}
		const uid = responsibleUid(this.#context.environment, deployment.uid);
		try {
			this.#assertResponsible(uid);
			if (uid !== deployment.uid && !options.dryRun) {
				// What the successor says holds as long as its predecessor establishes nothing any more.
				await this.#context.dropped.succeed(deployment.uid, uid);
			}
			const response = options.dryRun
				? await this.#dryRun(uid, question)
				: await this.#batcher(uid).submit(question);
			const { rules, owned, hiddenBlockers: hidden = 0 } = response;
			// An older server names its blockers to every caller: drop them unless all may be read.
			const isFiltered = response.hiddenBlockers !== undefined || options.caller === undefined;
			const blockers = isFiltered ? response.blockers : [];
			return { kind: "decided", deployment, decision: { rules, owned, blockers, hidden } };
		} catch (failure) {
			return this.#unreachable(deployment, failure);
		}
	}

	/**
	 * Needs no guard: the writes of this deployment assert the shadow, so an index that has reached this
	 * version of the shadow contains all of them.
	 */
	async #own(
		stored: StoredShadow,
		deployment: Deployed,
		options: HolderQueryOptions,
	): Promise<HolderResponse> {
		const { environment, index, limits } = this.#context;
		if (isSuccessionPending(environment, deployment.uid)) {
			const reason = "this deployment has not established yet what it references";
			return { kind: "unknown", deployment, reason };
		}
		const { resource, uid } = stored.shadow;
		try {
			await index.reachedWithin(stored.version, limits.callTimeoutMs);
		} catch {
			return { kind: "unknown", deployment, reason: "its own index is behind its storage" };
		}
		const target = resource ?? create(ResourceKeySchema);
		const { deleting = false, caller } = options;
		const shows = caller && ((blocker: Resource) => caller.mayRead(blocker));
		const decision = await currentDecision(this.#context, target, uid, { deleting, shows });
		if (options.deleting && (decision.rules.length > 0 || decision.owned)) {
			// The holder may be the predecessor of this deployment, which stores the target.
			const deploymentUid = environment.self.uid;
			this.#context.hints.deleting({ deploymentUid, target, targetUid: uid });
		}
		return { kind: "decided", deployment, decision };
	}

	#batcher(uid: string) {
		let batcher = this.#batchers.get(uid);
		if (batcher === undefined) {
			const { batchSize } = this.#context.limits;
			batcher = new Batcher((questions) => this.#call(uid, questions, false), batchSize);
			this.#batchers.set(uid, batcher);
		}
		return batcher;
	}

	async #dryRun(
		uid: string,
		question: CheckReferencesRequest_Question,
	): Promise<CheckReferencesResponse_Answer> {
		const [response] = await this.#call(uid, [question], true);
		if (response === undefined) {
			throw new ConnectError("the deployment sent no response", Code.Unavailable);
		}
		return response;
	}

	async #call(
		uid: string,
		questions: readonly CheckReferencesRequest_Question[],
		dryRun: boolean,
	): Promise<readonly CheckReferencesResponse_Answer[]> {
		const { environment, limits } = this.#context;
		let hasResponse = false;
		try {
			const response = await environment
				.client(uid)
				.checkReferences(
					{ route: routeTo(this.#context, uid), questions: [...questions], dryRun },
					{ timeoutMs: limits.callTimeoutMs },
				);
			hasResponse = true;
			return response.answers;
		} finally {
			this.#onQueried(uid, questions.length, hasResponse);
		}
	}

	/** The registry view of this server may lack a successor that another server of this deployment has relied on. */
	#assertResponsible(uid: string): void {
		const successorUid = this.#context.dropped.successorOf(uid);
		if (successorUid !== undefined && !isPlanted("query a deployment that was taken over")) {
			const reason = `deployment ${uid} was taken over by ${successorUid}, which this server does not know yet`;
			throw new ConnectError(reason, Code.Unavailable);
		}
	}

	/** Only the permanent record of its deletion releases on behalf of a deployment that is unreachable. */
	async #unreachable(deployment: Deployed, failure: unknown): Promise<HolderResponse> {
		try {
			const { environment } = this.#context;
			if (
				(await environment.isDeleted(deployment.uid)) ||
				(isPlanted("drop a source that is absent from the registry view") &&
					environment.byUid(deployment.uid) === undefined)
			) {
				await this.#context.dropped.drop(deployment.uid);
				const decision = { rules: [], owned: false, blockers: [], hidden: 0 };
				return { kind: "decided", deployment, decision };
			}
		} catch {
			// Whether it was deleted is not known now, or can't be recorded.
		}
		return { kind: "unknown", deployment, reason: ConnectError.from(failure).rawMessage };
	}
}
