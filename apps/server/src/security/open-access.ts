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

/** Who decides what those may do who call through the listener. */
export interface OpenAccess {
	readonly authorizer: Authorizer;
	/** Looks now whether files have changed. */
	reload(): Promise<void>;
	close(): void;
}

/** What a server was told about access. */
export interface AccessChoice {
	readonly access?: AccessOptions;
	readonly authorizer?: Authorizer;
}

/**
 * The authorizer that was given, or one of files; everyone may do everything where there is neither.
 *
 * @throws Error where a file can't be read or is malformed.
 */
export async function openAccess(
	{ access, authorizer }: AccessChoice,
	context: { readonly clock: Clock; readonly logger: Logger },
): Promise<OpenAccess> {
	const fixed = { reload: async () => {}, close: () => {} };
	if (authorizer !== undefined) {
		return { authorizer, ...fixed };
	}
	if (access === undefined) {
		context.logger.info(
			{},
			"no tokens are configured: everyone who reaches the port has full rights",
		);
		return { authorizer: insecureAllowAll, ...fixed };
	}
	const opened = await createAccessAuthorizer(access, context);
	return {
		authorizer: opened,
		reload: () => opened.reload(),
		close: () => opened.close(),
	};
}

/** @throws ListenError where everyone would have full rights, and the address is beyond this machine. */
export function checkReach(
	listen: ListenAddress,
	authorizer: Authorizer,
	allowAnonymous: boolean,
): void {
	const open = authorizer === insecureAllowAll && !allowAnonymous;
	if (open && !isLoopback(listen)) {
		throw new ListenError(
			`${formatListenAddress(listen)} is beyond this machine, where everyone who reaches it would have full rights: give access or an authorizer, listen on 127.0.0.1, or set allowAnonymous`,
		);
	}
}
