/** What modules import, and programs that start a server themselves. */

export {
	Code,
	ConnectError,
	type ConnectRouter,
	type HandlerContext,
	type ServiceImpl,
} from "@connectrpc/connect";
export type { Logger } from "@plinth/runtime";
export {
	type AccessOptions,
	type CallLimits,
	type CorsOptions,
	createLogger,
	createServer,
	defineModule,
	FileError,
	type JwtOptions,
	type ListenAddress,
	ListenError,
	type ListenerLimits,
	type LoggerOptions,
	loadModule,
	type Module,
	type ModuleContext,
	type ModuleDefinition,
	ModuleError,
	newToken,
	type Server,
	type ServerOptions,
	type StorageOptions,
	type TlsFiles,
} from "@plinth/server";
export {
	standInModule,
	standInType,
} from "@plinth/server/module";
