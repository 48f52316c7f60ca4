export { cachedRegions, cachedTypes, isCached } from "../define/cached-types.ts";
export { type CallReconcileOptions, callReconcile } from "./call-reconcile.ts";
