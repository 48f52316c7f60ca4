import type { Interceptor } from "@connectrpc/connect";

/** A call, as interceptors hand it on. */
export type InterceptedCall = ReturnType<Interceptor>;

/** `innermost` within the interceptors; the first of them sees a request first. */
export function chained(
	interceptors: readonly Interceptor[],
	innermost: InterceptedCall,
): InterceptedCall {
	return interceptors.reduceRight((next, interceptor) => interceptor(next), innermost);
}
