import type { Authorizer } from "@plinth/resource";
import { insecureAllowAll } from "@plinth/resource-service";
import type { Clock, Logger } from "@plinth/runtime";
import {
	formatListenAddress,
	isLoopback,
	type ListenAddress,
} from "../configuration/listen-address.ts";
import { ListenError } from "../listener/listen-error.ts";
import type { AccessOptions } from "./access-options.ts";
import { createAccessAuthorizer } from "./check-token.ts";

/** The authorizer of calls through the listener. */
export interface OpenAccess {
	readonly authorizer: Authorizer;
	/** Checks now whether files have changed. */
	reload(): Promise<void>;
	close(): void;
}

/** The options of a server that concern access. */
export interface AccessSource {
	readonly access?: AccessOptions;
	readonly authorizer?: Authorizer;
}

/**
 * The given authorizer, or one that follows an access file. If there is neither, every caller has full rights.
 *
 * @throws Error if a file can't be read or is malformed.
 */
export async function openAccess(
	{ access, authorizer }: AccessSource,
	context: { readonly clock: Clock; readonly logger: Logger },
): Promise<OpenAccess> {
	const fixed = { reload: async () => {}, close: () => {} };
	if (authorizer !== undefined) {
		return { authorizer, ...fixed };
	}
	if (access === undefined) {
		context.logger.info({}, "no tokens are configured: every caller has full rights");
		return { authorizer: insecureAllowAll, ...fixed };
	}
	const opened = await createAccessAuthorizer(access, context);
	return {
		authorizer: opened,
		reload: () => opened.reload(),
		close: () => opened.close(),
	};
}

/** @throws ListenError if every caller would have full rights, and other machines can reach the address. */
export function checkExposure(
	listen: ListenAddress,
	authorizer: Authorizer,
	allowAnonymous: boolean,
): void {
	const open = authorizer === insecureAllowAll && !allowAnonymous;
	if (open && !isLoopback(listen)) {
		throw new ListenError(
			`${formatListenAddress(listen)} is reachable from other machines, and every caller would have full rights: set access or authorizer, listen on 127.0.0.1, or set allowAnonymous`,
		);
	}
}
