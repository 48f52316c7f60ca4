import type { Interceptor } from "@connectrpc/connect";

/** A call, as interceptors pass it on. */
export type InterceptedCall = ReturnType<Interceptor>;

/** Wraps `innermost` in the interceptors; the first is the outermost. */
export function chainInterceptors(
	interceptors: readonly Interceptor[],
	innermost: InterceptedCall,
): InterceptedCall {
	return interceptors.reduceRight((next, interceptor) => interceptor(next), innermost);
}
