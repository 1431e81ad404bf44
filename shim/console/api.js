// The one place that talks to the service.
//
// The access token is in memory only.  The refresh token is in the storage of
// this tab, so that loading the page again keeps one logged in; it works once,
// so there is never more than one refresh under way.

import { parse } from './text.js'

const BASE = new URL('../', document.baseURI)
const STORED = 'entityapi.refresh'
const TAB = 'entityapi.tab'
const REASON = 'entityapi.reason'
export const AWAY = {
  code: 'UNREACHABLE', detail: 'The service cannot be reached. Look at the connection, then try again.'
}

const LOST = {
  code: 'OUTCOME_UNKNOWN',
  detail: 'The service cannot be reached. Look at the connection. It is not known whether this was saved: reload ' +
    'before you try again.'
}

let access = null
let ends = 0
let refreshing = null

/** The tenant that a SuperAdmin works in. */
export const acting = { tenant: null }

/** What the service answered when it did not do what was asked. */
export class ApiError extends Error {
  constructor(status, faults, headers) {
    super(faults[0]?.detail ?? faults[0]?.title ?? `The service answered ${status}.`)
    this.status = status
    this.faults = faults
    this.code = faults[0]?.code
    this.id = faults[0]?.id
    this.retryAfter = headers?.get('Retry-After') ?? null
  }
}

/** A path whose parts in ${} are each one segment, whatever they hold. */
export function at(texts, ...parts) {
  return texts.reduce((path, text, i) => {
    const part = String(parts[i - 1])
    if (['', '.', '..'].includes(part)) throw new ApiError(404, [{ detail: 'There is nothing at this address.' }])
    return path + encodeURIComponent(part) + text
  })
}

export function withQuery(path, query) {
  const said = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null && value !== '')
  const pairs = said.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
  return said.length === 0 ? path : `${path}?${pairs.join('&')}`
}

/** Which headers a request has beside its credential; the explorer shows them. */
export function headersFor(path, { body, headers, tenant = acting.tenant } = {}) {
  const isApi = path.startsWith('/api/')
  const media = isApi ? 'application/vnd.api+json' : 'application/json'
  const isText = path.startsWith('/actuator/prom')
  const isAtomic = /^\/api\/v\d+\/operations(\?|$)/.test(path)
  const atomic = isAtomic ? ';ext="https://jsonapi.org/ext/atomic"' : ''
  return {
    Accept: isApi ? `${media}${atomic}, application/json` : isText ? 'text/plain' : media,
    ...(body === undefined ? {} : { 'Content-Type': media + atomic }),
    ...(isApi && tenant ? { 'X-Tenant-Id': tenant } : {}),
    ...headers
  }
}

async function send(method, target, options) {
  const headers = headersFor(target, options)
  const began = performance.now()
  let answer, text
  if (access && !options.anonymous) headers.Authorization = `Bearer ${access}`
  try {
    answer = await fetch(new URL(target.slice(1), BASE), {
      method, headers, signal: options.signal, redirect: 'error',
      credentials: 'omit', cache: options.cache ?? 'no-store',
      body: typeof options.body === 'object' ? JSON.stringify(options.body) : options.body
    })
    text = await answer.text()
  } catch (error) {
    if (error.name === 'AbortError') throw error
    throw new ApiError(0, [method === 'GET' || options.anonymous ? AWAY : LOST])
  }
  let json = null
  if (/json/.test(answer.headers.get('Content-Type') ?? '')) {
    try { json = parse(text) } catch { json = null }
  }
  return { status: answer.status, headers: answer.headers, json, text, millis: performance.now() - began }
}

/** An answer whatever its status; the session is renewed where that is due. */
export async function exchange(method, target, options = {}) {
  if (access && !options.anonymous && performance.now() > ends) await refresh()
  const used = access
  let answer = await send(method, target, options)
  const expired = answer.status === 401 && answer.json?.errors?.[0]?.code !== 'LOGIN_FAILED'
  if (expired && used && !options.anonymous) {
    if (access === used) await refresh()
    answer = await send(method, target, options)
    if (answer.status === 401) end('ended')
  }
  return answer
}

/** The answer of a request that was done; else an ApiError. */
export async function request(method, target, options) {
  const answer = await exchange(method, target, options)
  if (answer.status >= 200 && answer.status < 400) return answer
  throw new ApiError(answer.status, answer.json?.errors ?? [], answer.headers)
}

export const get = async (target, query, options) => (await request('GET', withQuery(target, query), options)).json
export const post = async (target, body, options) => (await request('POST', target, { body, ...options })).json

function keep(pair) {
  access = pair.accessToken
  ends = performance.now() + Math.max(1, pair.expiresIn - 20) * 1000
  sessionStorage.setItem(STORED, pair.refreshToken)
}

/**
 * Who one is by now, if the session is still there.  Asked by itself, so it
 * must not keep the session alive: with the token at hand or not at all.
 */
export async function watch() {
  if (!access || performance.now() > ends) return null
  const answer = await exchange('GET', '/auth/me').catch(() => null)
  return answer?.status === 200 ? answer.json : null
}

function refresh() {
  refreshing ??= renew().finally(() => { refreshing = null })
  return refreshing
}

async function renew() {
  const refreshToken = sessionStorage.getItem(STORED)
  if (!refreshToken) return end('ended')
  const answer = await send('POST', '/auth/refresh', { body: { refreshToken }, anonymous: true })
  if (answer.status === 200) return keep(answer.json)
  if (answer.status < 500 && answer.status !== 429) return end('ended')
  throw new ApiError(answer.status, answer.json?.errors ?? [], answer.headers)
}

function forget() {
  access = null
  for (const name of [STORED, TAB, 'entityapi.tenant']) sessionStorage.removeItem(name)
}

/** Back to the login, with nothing left in memory: the page is loaded anew. */
function end(reason) {
  forget()
  sessionStorage.setItem(REASON, reason)
  location.reload()
  return new Promise(() => {})
}

export function takeReason() {
  const reason = sessionStorage.getItem(REASON)
  sessionStorage.removeItem(REASON)
  return reason
}

async function begin(path, body) {
  const pair = await post(path, body, { anonymous: true })
  if (pair.mfaRequired) return pair
  keep(pair)
  sessionStorage.setItem(TAB, crypto.getRandomValues(new Uint32Array(4)).join('-'))
  await own()
  return pair
}

/** The session has begun, but where the answer says mfaRequired: then a code is needed as well. */
export const login = (username, password) => begin('/auth/login', { username, password })
export const loginByCode = (mfaToken, code) => begin('/auth/login/totp', { mfaToken, code })

/**
 * A tab that was duplicated has the refresh token of the first one, and using
 * it in both would end the session.  Who holds the lock of its name owns it.
 */
function own() {
  const name = sessionStorage.getItem(TAB)
  if (!navigator.locks || !name) return Promise.resolve(true)
  const once = () => new Promise((resolve) => {
    navigator.locks.request(`entityapi ${name}`, { ifAvailable: true }, (lock) => {
      resolve(lock !== null)
      return lock === null ? undefined : new Promise(() => {})
    })
  })
  const pause = () => new Promise((resolve) => setTimeout(resolve, 150))
  return once().then((owned) => owned || pause().then(once))
}

/** Goes on with the session of this tab; false where there is none. */
export async function resume() {
  if (!sessionStorage.getItem(STORED)) return false
  if (!await own()) {
    forget()
    return false
  }
  await refresh()
  return true
}

export async function logout() {
  const refreshToken = sessionStorage.getItem(STORED)
  try {
    await send('POST', '/auth/logout', { body: { refreshToken } })
  } finally {
    await end('left')
  }
}

export async function changePassword(currentPassword, newPassword) {
  const answer = await post('/auth/change-password', { currentPassword, newPassword })
  if (answer?.accessToken) keep(answer)
}
