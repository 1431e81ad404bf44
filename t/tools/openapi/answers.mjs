// Hold recorded requests and answers against the description of the API.
//
//   node answers.mjs FOLDER
//
// The folder holds *.jsonl as EntityApi::Test::Shim records them, and the
// documents they name.  Prints one JSON object: how many exchanges were held
// against which operations, and what does not agree.

import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const folder = process.argv[2];
const documents = new Map();

// Statuses that an operation must name if it answers with them; the others
// are what any request may meet, and "default".
const named = new Set([200, 201, 204, 304, 400, 401, 403, 404, 409, 412, 415, 428, 429]);
const told = ['etag', 'location', 'deprecation', 'sunset'];

class Document {
  constructor(name) {
    this.json = JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'));
    this.ajv = new Ajv2020.default({ strict: false, validateSchema: false, validateFormats: true });
    addFormats.default(this.ajv);
    this.ajv.addFormat('int32', true).addFormat('int64', true).addFormat('password', true);
    this.ajv.addSchema(this.json, 'api');
    this.validators = new Map();
    this.paths = Object.keys(this.json.paths).map((path) => ({
      path,
      segments: path.split('/'),
      item: this.json.paths[path],
    }));
    // literal segments before variable ones
    this.paths.sort((a, b) => (a.path.match(/{/g) ?? []).length - (b.path.match(/{/g) ?? []).length);
  }

  find(target) {
    const segments = target.split('?')[0].split('/').map((s) => {
      try { return decodeURIComponent(s); } catch { return s; }
    });
    return this.paths.find((p) => p.segments.length === segments.length &&
      p.segments.every((s, i) => s.startsWith('{') ? segments[i] !== '' : s === segments[i] ||
        (i === 3 && s.toLowerCase() === segments[i])));
  }

  resolve(part, pointer) {
    if (!part?.$ref) return [part, pointer];
    pointer = part.$ref.slice(1);
    return [pointer.slice(1).split('/').reduce((at, token) =>
      at[token.replaceAll('~1', '/').replaceAll('~0', '~')], this.json), pointer];
  }

  // The faults of a value, by the schema at a pointer of the document.
  faults(pointer, value) {
    if (!this.validators.has(pointer)) {
      this.validators.set(pointer, this.ajv.compile({ $ref: `api#${encodeURI(pointer)}` }));
    }
    const validate = this.validators.get(pointer);
    return validate(value) ? null : this.ajv.errorsText(validate.errors.slice(0, 6));
  }
}

const escape = (token) => token.replaceAll('~', '~0').replaceAll('/', '~1');

// Quotes and spaces of a media type do not matter, profiles are ignored, and
// the one encoding of JSON says nothing.
const normal = (type) => (type ?? '').replace(/\s*;\s*profile="[^"]*"/i, '').replaceAll(/[\s"]/g, '').toLowerCase()
  .replace(/^application\/json;charset=utf-8$/, 'application/json');

function checkContent(document, part, pointer, type, body) {
  const key = Object.keys(part.content ?? {}).find((k) => normal(k) === normal(type));
  if (key === undefined) return `the media type "${type}" is not described`;
  let value;
  try { value = JSON.parse(body); } catch { return 'no JSON'; }
  return document.faults(`${pointer}/content/${escape(key)}/schema`, value);
}

function checkAnswer(document, found, method, exchange) {
  const operation = found.item[method];
  const key = operation.responses[exchange.status] ? String(exchange.status) : 'default';
  if (key === 'default' && named.has(exchange.status)) return 'the status is not described';
  const [answer, pointer] = document.resolve(operation.responses[key],
    `/paths/${escape(found.path)}/${method}/responses/${key}`);
  for (const name of told) {
    if (exchange.headers[name] !== undefined && exchange.status < 300 &&
        !Object.keys(answer.headers ?? {}).some((h) => h.toLowerCase() === name)) {
      return `the header ${name} is not described`;
    }
  }
  if (exchange.body === '') return answer.content && exchange.status !== 304 ? 'there is no body' : null;
  return checkContent(document, answer, pointer, exchange.headers['content-type'], exchange.body);
}

// What the service took must be what the description lets one send.  Removing
// what cannot be a member is taken, too, and not described.
function checkRequest(document, found, method, exchange) {
  const body = found.item[method].requestBody;
  if (exchange.status >= 300 || exchange.request.body == null || !/json/.test(exchange.request.type ?? '')) return null;
  if (body === undefined || method === 'delete') return null;
  return checkContent(document, body, `/paths/${escape(found.path)}/${method}/requestBody`,
    exchange.request.type, exchange.request.body);
}

const result = { held: 0, other: 0, operations: {}, faults: [] };
for (const file of readdirSync(folder).filter((f) => f.endsWith('.jsonl'))) {
  for (const line of readFileSync(join(folder, file), 'utf8').split('\n').filter(Boolean)) {
    const exchange = JSON.parse(line);
    if (!documents.has(exchange.document)) documents.set(exchange.document, new Document(exchange.document));
    const document = documents.get(exchange.document);
    const method = exchange.method.toLowerCase();
    const found = document.find(exchange.target);
    const fault = (message) => result.faults.push(
      `${exchange.method} ${exchange.target} ${exchange.status}: ${message}\n  ${exchange.request.body ?? ''}\n  ${exchange.body.slice(0, 400)}`);

    if (!found?.item[method]) {
      // only refusals may come from what is not described
      if (exchange.status < 400) fault('the operation is not described');
      else result.other += 1;
      continue;
    }
    const name = found.item[method].operationId;
    const statuses = result.operations[name] ??= {};
    statuses[exchange.status] = (statuses[exchange.status] ?? 0) + 1;
    result.held += 1;
    const answer = checkAnswer(document, found, method, exchange);
    if (answer) fault(answer);
    const request = checkRequest(document, found, method, exchange);
    if (request) fault(`the request: ${request}`);
  }
}
console.log(JSON.stringify(result));
