export type { ListenAddress } from "./configuration/listen-address.ts";
export { FileError } from "./configuration/located-yaml.ts";
export { type CallLimits, defaultCallLimits } from "./limits/call-limits.ts";
export { defaultListenerLimits, type ListenerLimits } from "./listener/limits.ts";
export { ListenError } from "./listener/listen-error.ts";
export type { TlsFiles } from "./listener/tls/tls-files.ts";
export { createLogger, type LoggerOptions } from "./logging/pino-logger.ts";
export {
	defineModule,
	type Module,
	type ModuleContext,
	type ModuleDefinition,
} from "./module/define-module.ts";
export { loadModule, ModuleError } from "./module/load-module.ts";
export type { AccessOptions, JwtOptions } from "./security/access-options.ts";
export { type AccessAuthorizer, createAccessAuthorizer } from "./security/check-token.ts";
export { newToken } from "./security/new-token.ts";
export { createServer, type Server } from "./server.ts";
export type { CorsOptions, ServerOptions } from "./server-options.ts";
export type { StorageOptions } from "./storage/open-storage.ts";
