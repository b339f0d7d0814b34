"""Plays one story on the dashboard of a server: main.py STORY ADDRESS CHROMIUM AXE SHOTS"""

import sys

import forms
import hostile
import keyboard
import live
import pages
import rights
import tasks
from stage import Stage

STORIES = {module.__name__: module.play for module in (pages, forms, keyboard, hostile, live, rights, tasks)}


def main():
    story, base, chromium, axe, shots = sys.argv[1:6]
    stage = Stage(base, chromium, axe, shots)
    try:
        STORIES[story](stage)
    finally:
        stage.end()
    print("all of it")


main()
