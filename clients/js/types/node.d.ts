// The part of Node that src/node.js uses, for the check of types without another dependency.

declare module 'node:fs/promises' {
  export function stat(file: string): Promise<{ size: number }>
  export function readFile(file: string, encoding: 'utf8'): Promise<string>
}

declare module 'node:path' {
  export function dirname(file: string): string
  export function resolve(...parts: string[]): string
}

declare module 'node:https' {
  export interface Socket {
    readonly connecting: boolean
    readonly authorizationError?: Error | string | null
    destroy(error: Error): void
    once(name: 'secureConnect' | 'close', listener: () => void): void
  }
  export interface IncomingMessage extends AsyncIterable<Uint8Array> {
    readonly statusCode: number
    readonly headers: Record<string, string | undefined>
  }
  export interface ClientRequest {
    readonly socket: Socket | null
    end(body: Uint8Array): void
    destroy(error?: Error): void
    on(name: 'close', listener: () => void): void
    on(name: 'socket', listener: (socket: Socket) => void): void
    on(name: 'error', listener: (error: Error) => void): void
    on(name: 'response', listener: (answer: IncomingMessage) => void): void
  }
  export class Agent {
    constructor(options: { keepAlive: boolean; maxSockets: number; ca?: string })
    destroy(): void
  }
  export function request(
    url: string,
    options: { method: string; headers: Record<string, string | number>; agent: Agent },
  ): ClientRequest
}
