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
import { Batcher } from "./batcher.ts";
import type { ConstraintContext } from "./constraint-context.ts";
import { forwarded } from "./forwarded-callers.ts";
import { currentDecision, type HolderDecision } from "./holder-decision.ts";
import { deployedOf, holders } from "./shadow.ts";
import type { StoredShadow } from "./shadow-records.ts";
import { isSuccessionPending, responsibleUid } from "./successors.ts";

/** What one deployment said of a resource. */
export type HolderResponse =
	| { readonly kind: "answer"; readonly deployment: Deployed; readonly answer: HolderDecision }
	/** It could not be asked: what it would say is not known. */
	| { readonly kind: "unknown"; readonly deployment: Deployed; readonly why: string };

/** Whether the deployment lets go of the resource: nothing there references it or is owned by it. */
export function isReleased(answer: HolderResponse): boolean {
	return answer.kind === "answer" && answer.answer.rules.length === 0 && !answer.answer.owned;
}

/** Whether the answer keeps a deletion from beginning. */
export function blocks(answer: HolderResponse): boolean {
	return answer.kind === "unknown" || answer.answer.rules.includes(OnDelete.BLOCK);
}

/** Who calls whom. */
export function routeTo(context: Pick<ConstraintContext, "environment">, uid: string): Route {
	return create(RouteSchema, { from: deployedOf(context.environment.self), toUid: uid });
}

/** How a question is asked. */
export interface HolderQueryOptions {
	/** Whether the resource is being deleted for good, so that those asked let go of it. */
	readonly deleting?: boolean;
	/** To whom blockers are named; absent: to the deployment itself, which may read all. */
	readonly caller?: Caller | undefined;
	/** Whether nothing may change anywhere; then the answers are not final. */
	readonly dryRun?: boolean;
}

/** Told of questions that a deployment was asked together. */
export type HolderQueryListener = (uid: string, questions: number, answered: boolean) => void;

/** Asks deployments about resources of this one. */
export class HolderQuery {
	readonly #context: ConstraintContext;
	readonly #onAsked: HolderQueryListener;
	readonly #batchers = new Map<
		string,
		Batcher<CheckReferencesRequest_Question, CheckReferencesResponse_Answer>
	>();

	/** @param onAsked - hears of questions that another deployment was asked, and has answered or not. */
	constructor(context: ConstraintContext, onAsked: HolderQueryListener = () => {}) {
		this.#context = context;
		this.#onAsked = onAsked;
	}

	/**
	 * Asks all that hold a resource, by its shadow as it is stored: the answers are about writes that
	 * began before that version of the shadow, too. Stops at this deployment where that blocks and
	 * `deleting` is not set. Never rejects but for faults of this storage.
	 */
	async all(
		stored: StoredShadow,
		options: HolderQueryOptions = {},
	): Promise<readonly HolderResponse[]> {
		const { environment } = this.#context;
		const { self } = environment;
		const deployments = holders(stored.shadow);
		const isOwn = ({ uid }: Deployed) => responsibleUid(environment, uid) === self.uid;
		const answers: HolderResponse[] = [];
		for (const own of deployments.filter(isOwn)) {
			const answer = await this.#own(stored, own, options);
			answers.push(answer);
			if (blocks(answer) && !options.deleting) {
				return answers;
			}
		}
		const others = deployments.filter((each) => !isOwn(each));
		const theirs = others.map((deployment) => this.one(stored, deployment, options));
		return [...answers, ...(await Promise.all(theirs))];
	}

	/** Asks one other deployment. Never rejects. */
	async one(
		stored: StoredShadow,
		deployment: Deployed,
		options: HolderQueryOptions = {},
	): Promise<HolderResponse> {
		const question = create(CheckReferencesRequest_QuestionSchema, {
			target: stored.shadow.resource ?? create(ResourceKeySchema),
			targetUid: stored.shadow.uid,
			deleting: options.deleting ?? false,
			// A deletion that goes on anyway names nobody.
			...(!options.deleting && { caller: forwarded(options.caller) }),
		});
		if (isSuccessionPending(this.#context.environment, deployment.uid)) {
			const why = "its successor has not established yet what it references";
			return { kind: "unknown", deployment, why };
		}
		const uid = responsibleUid(this.#context.environment, deployment.uid);
		try {
			const answer = options.dryRun
				? await this.#dryRun(uid, question)
				: await this.#batcher(uid).ask(question);
			const { rules, owned, hiddenBlockers: hidden = 0 } = answer;
			// An older server names its blockers whoever asks.
			const isFiltered = answer.hiddenBlockers !== undefined || options.caller === undefined;
			const blockers = isFiltered ? answer.blockers : [];
			return { kind: "answer", deployment, answer: { rules, owned, blockers, hidden } };
		} catch (failure) {
			return this.#unreachable(deployment, failure);
		}
	}

	/**
	 * No guard is needed: what this deployment writes asserts the shadow, so that the index has all of
	 * it once it has this version of the shadow.
	 */
	async #own(
		stored: StoredShadow,
		deployment: Deployed,
		options: HolderQueryOptions,
	): Promise<HolderResponse> {
		const { environment, index, limits } = this.#context;
		if (isSuccessionPending(environment, deployment.uid)) {
			const why = "this deployment has not established yet what it references";
			return { kind: "unknown", deployment, why };
		}
		const { resource, uid } = stored.shadow;
		try {
			await index.reachedWithin(stored.version, limits.callMs);
		} catch {
			return { kind: "unknown", deployment, why: "its own index is behind its storage" };
		}
		const target = resource ?? create(ResourceKeySchema);
		const { deleting = false, caller } = options;
		const shows = caller && ((blocker: Resource) => caller.mayRead(blocker));
		const answer = await currentDecision(this.#context, target, uid, { deleting, shows });
		if (options.deleting && (answer.rules.length > 0 || answer.owned)) {
			this.#context.hints.deleting(deployment.uid, target, uid);
		}
		return { kind: "answer", deployment, answer };
	}

	#batcher(uid: string) {
		let batcher = this.#batchers.get(uid);
		if (batcher === undefined) {
			const { batchSize } = this.#context.limits;
			batcher = new Batcher((questions) => this.#ask(uid, questions, false), batchSize);
			this.#batchers.set(uid, batcher);
		}
		return batcher;
	}

	async #dryRun(
		uid: string,
		question: CheckReferencesRequest_Question,
	): Promise<CheckReferencesResponse_Answer> {
		const [answer] = await this.#ask(uid, [question], true);
		if (answer === undefined) {
			throw new ConnectError("the deployment gave no answer", Code.Unavailable);
		}
		return answer;
	}

	async #ask(
		uid: string,
		questions: readonly CheckReferencesRequest_Question[],
		dryRun: boolean,
	): Promise<readonly CheckReferencesResponse_Answer[]> {
		const { environment, limits } = this.#context;
		let answered = false;
		try {
			const { answers } = await environment
				.client(uid)
				.checkReferences(
					{ route: routeTo(this.#context, uid), questions: [...questions], dryRun },
					{ timeoutMs: limits.callMs },
				);
			answered = true;
			return answers;
		} finally {
			this.#onAsked(uid, questions.length, answered);
		}
	}

	/** Only the permanent record of its deletion speaks for a deployment that does not. */
	async #unreachable(deployment: Deployed, failure: unknown): Promise<HolderResponse> {
		try {
			if (await this.#context.environment.isDeleted(deployment.uid)) {
				const answer = { rules: [], owned: false, blockers: [], hidden: 0 };
				return { kind: "answer", deployment, answer };
			}
		} catch {
			// Then it is not known.
		}
		return { kind: "unknown", deployment, why: ConnectError.from(failure).rawMessage };
	}
}
