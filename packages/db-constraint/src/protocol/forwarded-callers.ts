import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import {
	type Caller as CallerMessage,
	CallerSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { Deployed } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Caller } from "@plinth/resource";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { displayDeployed } from "../shadow/shadow.ts";

/** The message that forwards a caller to another deployment. `undefined`: this deployment itself. */
export function forwarded(caller: Caller | undefined): CallerMessage {
	return create(CallerSchema, {
		caller:
			caller === undefined
				? { case: "deployment", value: {} }
				: { case: "user", value: { token: caller.token.reveal() ?? "" } },
	});
}

/**
 * The caller that another deployment has forwarded, authenticated by this deployment. `undefined` if no
 * authorization is needed: the deployment acts on its own behalf, or it sends no callers and this deployment
 * requires no tokens. Without tokens the hooks of types still authorize callers, like local ones.
 *
 * @throws ConnectError PermissionDenied if the token is not accepted here; Unavailable if the deployment runs
 *   a version that sends no callers, and this one requires tokens.
 */
export async function receivedCaller(
	{ callers, environment }: Pick<ConstraintContext, "callers" | "environment">,
	from: Deployed,
	message: CallerMessage | undefined,
): Promise<Caller | undefined> {
	const sent = message?.caller;
	if (callers === undefined || sent?.case === "deployment") {
		return undefined;
	}
	if (sent?.case !== "user") {
		if (callers.isOpen) {
			return undefined;
		}
		throw new ConnectError(
			`${displayDeployed(from)} runs a version that does not name the caller of a reference: update it`,
			Code.Unavailable,
		);
	}
	try {
		return await callers.authenticate(sent.value.token || undefined);
	} catch (failure) {
		const { code, rawMessage } = ConnectError.from(failure);
		if (code !== Code.Unauthenticated) {
			throw failure;
		}
		const { name, uid } = environment.self;
		throw new ConnectError(
			`deployment ${name || uid} does not accept the caller: ${rawMessage}`,
			Code.PermissionDenied,
		);
	}
}

/**
 * Decides which blockers a decision may name to the caller of a holder query. `undefined` for all. None if no
 * caller was sent or the token is not accepted here, or can't be checked: the decision itself does not depend on the
 * caller, nor do the others of its request.
 */
export async function shownTo(
	context: Pick<ConstraintContext, "callers" | "logger">,
	message: CallerMessage | undefined,
): Promise<((blocker: Resource) => boolean) | undefined> {
	const { callers } = context;
	const sent = message?.caller;
	const isUser = sent?.case === "user";
	if (callers === undefined || sent?.case === "deployment" || (callers.isOpen && !isUser)) {
		return undefined;
	}
	try {
		const caller = isUser ? await callers.authenticate(sent.value.token || undefined) : undefined;
		return (blocker) => caller?.mayRead(blocker) ?? false;
	} catch (failure) {
		if (ConnectError.from(failure).code !== Code.Unauthenticated) {
			context.logger.warn(
				{ err: failure },
				"a caller can't be checked: no blockers are named to it",
			);
		}
		return () => false;
	}
}
