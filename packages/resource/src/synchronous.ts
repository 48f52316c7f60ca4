/**
 * A hook returned a promise, whose outcome would be ignored. This is a bug of the type and not of the caller:
 * a TypeError, which is returned to callers as an internal error.
 */
export class AsynchronousHook extends TypeError {
	override readonly name = "AsynchronousHook";

	/** @param what as `hook validate of resource type demo.v2.Artist`. */
	constructor(what: string) {
		super(`${what} returned a promise: hooks are synchronous, and promises are not awaited`);
	}
}

/**
 * Refuses a promise. Its rejection is handled, so that only the error thrown here is reported.
 *
 * @throws AsynchronousHook
 */
export function refusePromise(result: unknown, what: string): void {
	if (isThenable(result)) {
		result.then(ignore, ignore);
		throw new AsynchronousHook(what);
	}
}

type Hook = (...args: never[]) => unknown;

/**
 * Wraps the hooks so that each throws if it returns a promise. TypeScript refuses such hooks already, if types
 * are checked; an ignored promise would let pass a call that the hook refuses, and its rejection would be
 * unhandled.
 *
 * @param name as `resource type demo.v2.Artist`.
 */
export function synchronousHooks<Hooks extends object>(hooks: Hooks, name: string): Hooks {
	const entries = Object.entries(hooks).map(([key, value]) => {
		if (typeof value === "function") {
			return [key, synchronous(value as Hook, hooks, `hook ${key} of ${name}`)];
		}
		return [key, isHooks(value) ? synchronousHooks(value, name) : value];
	});
	return Object.fromEntries(entries) as Hooks;
}

function isHooks(value: unknown): value is object {
	return typeof value === "object" && value !== null;
}

function synchronous(hook: Hook, self: object, what: string): Hook {
	return (...args) => {
		const result = hook.apply(self, args);
		refusePromise(result, what);
		return result;
	};
}

function ignore(): void {}

function isThenable(value: unknown): value is PromiseLike<unknown> {
	return (
		typeof value === "object" &&
		value !== null &&
		"then" in value &&
		typeof value.then === "function"
	);
}
