import { allowed, type Caller, CallerToken } from "@plinth/resource";

/** A user without a token, who may name and read everything. */
export const anyone: Caller = {
	token: new CallerToken(undefined),
	decideReference: () => allowed,
	mayRead: () => true,
};
