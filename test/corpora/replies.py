"""
Prints, as JSON a line, the replies of two projects' tests with what those tests expect: talon (its tests are run against
a recorder) and email-reply-parser (its fixtures, and its own expectations where they are about a whole text).

    python3 replies.py FOLDER      FOLDER holds the checkouts "talon" and "email-reply-parser"
"""
import email
import importlib
import json
import os
import re
import sys
import types


def emit(name, kind, given, expected):
    print(json.dumps({'name': name, 'kind': kind, 'given': given, 'expected': expected}))


def talon(root):
    """Each call of an extracting function, with the value that it is then compared with."""
    calls = []

    def extract(kind):
        def recorder(body, *_):
            calls.append((kind, body))
            return len(calls) - 1
        return recorder

    quotations = types.ModuleType('talon.quotations')
    quotations.extract_from_plain = extract('text')
    quotations.extract_from_html = extract('html')
    tests = types.ModuleType('tests')
    tests.__path__ = [os.path.join(root, 'tests')]
    pairs = []

    def eq_(one, other, *_):
        if isinstance(other, int):
            pairs.append((*calls[other], one))

    ignore = lambda *args, **kwargs: None
    passing = types.SimpleNamespace(object=lambda *args, **kwargs: lambda function: function)
    for name, value in {'eq_': eq_, 'ok_': ignore, 'assert_false': ignore, 'assert_true': ignore, 'patch': passing}.items():
        setattr(tests, name, value)
    tests.email = email
    fixtures = types.ModuleType('tests.fixtures')
    fixtures.STANDARD_REPLIES = os.path.join(root, 'tests/fixtures/standard_replies')
    for name in ['OLK_SRC_BODY_SECTION', 'REPLY_SEPARATED_BY_HR', 'REPLY_QUOTATIONS_SHARE_BLOCK']:
        setattr(fixtures, name, fixture(root, name))
    six = types.ModuleType('six')
    six.text_type = str
    six.StringIO = ignore
    moves = types.ModuleType('six.moves')
    moves.range = range
    nose = types.ModuleType('nose')
    tools = types.ModuleType('nose.tools')
    for name, value in {'eq_': eq_, 'ok_': ignore, 'assert_false': ignore, 'assert_true': ignore}.items():
        setattr(tools, name, value)
    package = types.ModuleType('talon')
    package.quotations = quotations
    package.utils = types.SimpleNamespace(html_to_text=lambda index: index)
    regex = types.SimpleNamespace(compile=lambda *_: types.SimpleNamespace(sub=lambda _with, value: value))
    sys.modules.update({'talon': package, 'tests': tests, 'tests.fixtures': fixtures, 'six': six, 'six.moves': moves,
                        'nose': nose, 'nose.tools': tools})
    os.chdir(root)
    list_unsorted = os.listdir
    os.listdir = lambda folder: sorted(list_unsorted(folder))
    for file in ['text_quotations_test', 'html_quotations_test']:
        module = types.ModuleType('tests.' + file)
        module.__package__ = 'tests'
        with open(os.path.join(root, 'tests', file + '.py'), encoding='utf8') as source:
            exec(compile(source.read(), file, 'exec'), module.__dict__)
        if file.startswith('html'):
            # What is compared there has no white space.
            module.RE_WHITESPACE = types.SimpleNamespace(sub=lambda _with, value: value)
        module.extract_reply_and_check = lambda name: html_reply(root, name)
        for name, function in list(module.__dict__.items()):
            if not name.startswith('test_') or not callable(function):
                continue
            del pairs[:]
            try:
                produced = function()
                for check in produced or []:
                    check[0](*check[1:3])
            except Exception:  # tests of other functions
                pass
            for index, (kind, given, expected) in enumerate(pairs):
                emit(f'talon {file.split("_")[0]} {name[5:]} {index}', kind, given, expected)


def html_reply(root, name):
    with open(os.path.join(root, name), encoding='utf8') as file:
        emit('talon ' + os.path.basename(name), 'html', file.read(), 'Hi. I am fine.\n\nThanks,\nAlex')


def fixture(root, name):
    for file in os.listdir(os.path.join(root, 'tests/fixtures')):
        if re.split(r'\W', file.upper().replace('-', '_'))[0] == name:
            with open(os.path.join(root, 'tests/fixtures', file), encoding='utf8') as opened:
                return opened.read()
    return ''


def email_reply_parser(root):
    with open(os.path.join(root, 'test/test.js'), encoding='utf8') as file:
        source = file.read()
    common = re.search(r"COMMON_FIRST_FRAGMENT = '(.*?)';", source, re.S)[1].replace('\\n\\\n', '\n')
    whole = {}
    for body in source.split('export function ')[1:]:
        used = re.search(r'get_email\("(.*?)"\)', body)
        if used and 'COMMON_FIRST_FRAGMENT' in body:
            whole[used[1]] = common
        text = re.search(r'test\.equal\("(.*)", (?:reply\.fragments\[0\]|fragments\[0\]|email\.getVisibleText)', body)
        if used and text:
            whole[used[1]] = json.loads('"' + text[1] + '"').strip()
    folder = os.path.join(root, 'test/fixtures')
    for file in sorted(os.listdir(folder)):
        name = file[:-4]
        with open(os.path.join(folder, file), encoding='utf8') as opened:
            emit('parser ' + name, 'text', opened.read(), whole.get(name))


if __name__ == '__main__':
    talon(os.path.abspath(os.path.join(sys.argv[1], 'talon')))
    email_reply_parser(os.path.abspath(os.path.join(sys.argv[1], 'email-reply-parser')))
